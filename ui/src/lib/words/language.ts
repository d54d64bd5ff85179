// How a text fits its number and its reader: the language, counts and plural forms.
/** The language to write numbers and times in: the person's, or English where it is no language ("C", on a bare system). */
export function language(tag: string | undefined): string {
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? "en";
  } catch {
    return "en";
  }
}

export const locale = language(globalThis.navigator?.language);

export const number = new Intl.NumberFormat(locale);
const rules = new Intl.PluralRules("en");

/** The form for a count; "#" stands for the number. */
export function plural(n: number, forms: { one: string; other: string }): string {
  return (rules.select(n) === "one" ? forms.one : forms.other).replaceAll("#", number.format(n));
}
