// A flat JSON schema as form fields. Pure; anything it does not know makes the form a JSON field.

export interface Field {
  name: string;
  title: string;
  description: string;
  kind: "text" | "number" | "integer" | "boolean" | "choice";
  choices: string[];
  required: boolean;
}

type Json = Record<string, unknown>;
const isObject = (v: unknown): v is Json => typeof v === "object" && v !== null && !Array.isArray(v);
const text = (v: unknown): string => (typeof v === "string" ? v : "");

export function fields(schema: string | null): Field[] | null {
  if (schema === null) return null;
  let root: unknown;
  try {
    root = JSON.parse(schema);
  } catch {
    return null;
  }
  if (!isObject(root) || !isObject(root.properties)) return null;
  const required = Array.isArray(root.required) ? root.required : [];
  const out: Field[] = [];
  for (const [name, spec] of Object.entries(root.properties)) {
    if (!isObject(spec)) return null;
    const choices = Array.isArray(spec.enum) ? spec.enum.filter((c): c is string => typeof c === "string") : [];
    const kind = choices.length > 0 ? "choice" : spec.type === "string" ? "text" : spec.type;
    if (kind !== "choice" && kind !== "text" && kind !== "number" && kind !== "integer" && kind !== "boolean") return null;
    out.push({ name, title: text(spec.title) || name, description: text(spec.description), kind, choices, required: required.includes(name) });
  }
  return out;
}

/** The JSON of what was typed, or null while something required or valid is missing. */
export function assemble(list: readonly Field[], typed: Readonly<Record<string, string | boolean>>): string | null {
  const out: Json = {};
  for (const field of list) {
    const value = typed[field.name];
    if (field.kind === "boolean") {
      out[field.name] = value === true;
      continue;
    }
    const written = typeof value === "string" ? value.trim() : "";
    if (written === "") {
      if (field.required) return null;
      continue;
    }
    if (field.kind === "number" || field.kind === "integer") {
      const n = Number(written);
      if (!Number.isFinite(n) || (field.kind === "integer" && !Number.isInteger(n))) return null;
      out[field.name] = n;
    } else out[field.name] = written;
  }
  return JSON.stringify(out);
}
