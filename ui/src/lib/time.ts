// Times in words. Pure: the present moment is always an argument.
import { locale, words } from "./words";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
const weekday = new Intl.DateTimeFormat(locale, { weekday: "long" });
const shortWeekday = new Intl.DateTimeFormat(locale, { weekday: "short" });
const date = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const fullDate = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric" });

/** "41 s", "12 min", "3 h". */
export function elapsed(ms: number): string {
  const t = Math.max(0, ms);
  if (t < MINUTE) return words.time.seconds(Math.floor(t / SECOND));
  if (t < HOUR) return words.time.minutes(Math.floor(t / MINUTE));
  if (t < DAY) return words.time.hours(Math.floor(t / HOUR));
  return words.time.days(Math.floor(t / DAY));
}

/** "41 s", "3 min 08 s", "2 h 05 min". */
export function elapsedExact(ms: number): string {
  const t = Math.max(0, ms);
  if (t < MINUTE) return words.time.seconds(Math.floor(t / SECOND));
  if (t < HOUR) return words.time.minutesSeconds(Math.floor(t / MINUTE), Math.floor((t % MINUTE) / SECOND));
  return words.time.hoursMinutes(Math.floor(t / HOUR), Math.floor((t % HOUR) / MINUTE));
}

/** How long a command took: "3.1 s" below a minute. */
export function duration(ms: number): string {
  return ms < MINUTE ? words.time.tenths(Math.round(ms / 100) / 10) : elapsedExact(ms);
}

export const clockTime = (at: number): string => clock.format(at);

function daysBetween(at: number, now: number): number {
  const midnight = (t: number) => new Date(t).setHours(0, 0, 0, 0);
  return Math.round((midnight(now) - midnight(at)) / DAY);
}

/** Past: the time today, then "Yesterday", the weekday, the date. */
export function when(at: number, now: number): string {
  const days = daysBetween(at, now);
  if (days <= 0) return clock.format(at);
  if (days === 1) return words.time.yesterday;
  if (days < 7) return weekday.format(at);
  return new Date(at).getFullYear() === new Date(now).getFullYear() ? date.format(at) : fullDate.format(at);
}

/** Future or past with its time: "12:40", "Thu 09:00", "3 Dec 09:00". */
export function moment(at: number, now: number): string {
  const days = Math.abs(daysBetween(at, now));
  if (days === 0) return clock.format(at);
  return `${days < 7 ? shortWeekday.format(at) : date.format(at)} ${clock.format(at)}`;
}
