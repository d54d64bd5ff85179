// The interface icons, 16×16. Class "f" is filled, "k"/"kf" are cut out in the ground's colour, "spin" turns.

export type Shape =
  | { path: string; class?: string }
  | { circle: [cx: number, cy: number, r: number]; class?: string }
  | { rect: [x: number, y: number, width: number, height: number, rx: number]; class?: string };

export const ICONS = {
  back: [{ path: "M10 3 5 8l5 5" }],
  bell: [{ path: "M3 11.5c1-1 1.25-2.3 1.25-4.25a3.75 3.75 0 0 1 7.5 0c0 1.95.25 3.25 1.25 4.25ZM6.5 13.75c.8.7 2.2.7 3 0" }],
  box: [{ rect: [2.75, 2.75, 10.5, 10.5, 2] }],
  boxd: [{ rect: [2.75, 2.75, 10.5, 10.5, 2] }, { path: "m5.3 8.2 1.9 1.9 3.5-4" }],
  boxr: [{ rect: [2.75, 2.75, 10.5, 10.5, 2] }, { path: "M6.3 5.3v5.4L11 8Z", class: "f" }],
  chat: [{ path: "M2 3.75C2 3.05 2.55 2.5 3.25 2.5h9.5c.7 0 1.25.55 1.25 1.25v6c0 .7-.55 1.25-1.25 1.25H7l-3.25 2.75V11h-.5C2.55 11 2 10.45 2 9.75Z" }],
  check: [{ path: "m3 8.5 3.2 3.2L13 4.5" }],
  clock: [{ circle: [8, 8, 6.25] }, { path: "M8 4.5V8l2.5 1.5" }],
  close: [{ path: "m4 4 8 8M12 4l-8 8" }],
  copy: [{ rect: [5.75, 5.75, 8.5, 8.5, 1.5] }, { path: "M10.25 3.5V3c0-.7-.55-1.25-1.25-1.25H3c-.7 0-1.25.55-1.25 1.25v6c0 .7.55 1.25 1.25 1.25h.5" }],
  done: [{ circle: [8, 8, 7], class: "f" }, { path: "m4.9 8.2 2.2 2.2 4-4.6", class: "k" }],
  down: [{ path: "m4 6 4 4 4-4" }],
  err: [{ path: "M7.1 1.9 1 12.9c-.4.7.1 1.6.9 1.6h12.2c.8 0 1.3-.9.9-1.6L8.9 1.9c-.4-.7-1.4-.7-1.8 0Z", class: "f" }, { path: "M8 5.8v3.5", class: "k" }, { circle: [8, 11.8, 0.9], class: "kf" }],
  ext: [{ path: "M6.5 3H3v10h10V9.5M9 2.75h4.25V7M13 3 7.5 8.5" }],
  file: [{ path: "M9 1.75H4.5A1.25 1.25 0 0 0 3.25 3v10c0 .7.55 1.25 1.25 1.25h7c.7 0 1.25-.55 1.25-1.25V5.5L9 1.75Zm0 0V5.5h3.75" }],
  folder: [{ path: "M1.75 12V4c0-.7.55-1.25 1.25-1.25h3l1.5 1.75H13c.7 0 1.25.55 1.25 1.25V12c0 .7-.55 1.25-1.25 1.25H3c-.7 0-1.25-.55-1.25-1.25Z" }],
  gear: [{ path: "M2 4.5h7M13 4.5h1M2 11.5h1M7 11.5h7" }, { circle: [11, 4.5, 1.75] }, { circle: [5, 11.5, 1.75] }],
  idle: [{ circle: [8, 8, 6.25] }],
  in: [{ circle: [8, 5.25, 2.75] }, { path: "M2.75 14c.3-2.9 2.3-4.5 5.25-4.5s4.95 1.6 5.25 4.5" }],
  key: [{ circle: [5.25, 10.75, 3] }, { path: "m7.5 8.5 6-6M11 5l2 2M9 7l1.25 1.25" }],
  lock: [{ rect: [3, 7, 10, 7, 1.5] }, { path: "M5.25 7V4.75a2.75 2.75 0 0 1 5.5 0V7" }],
  more: [{ circle: [3.5, 8, 1.25], class: "f" }, { circle: [8, 8, 1.25], class: "f" }, { circle: [12.5, 8, 1.25], class: "f" }],
  needs: [{ circle: [8, 8, 7], class: "f" }, { path: "M6.2 6.3c.1-1.1.8-1.7 1.9-1.7 1 0 1.8.6 1.8 1.6 0 1.3-1.8 1.3-1.8 2.7", class: "k" }, { circle: [8.05, 11.4, 0.95], class: "kf" }],
  offline: [{ path: "M1.5 6.2A10 10 0 0 1 5 4M7.5 3.3a10 10 0 0 1 7 2.9M4 9a6 6 0 0 1 3-1.6M10.5 7.9c.6.3 1 .6 1.5 1.1M2 1.5l12 12" }, { circle: [8, 12.5, 1.1], class: "f" }],
  out: [{ circle: [8, 5.25, 2.75] }, { path: "M2.75 14c.3-2.9 2.3-4.5 5.25-4.5 1.1 0 2 .2 2.8.6M2 2l12 12" }],
  person: [{ circle: [8, 5.25, 2.75] }, { path: "M2.75 14c.3-2.9 2.3-4.5 5.25-4.5s4.95 1.6 5.25 4.5" }],
  plug: [{ path: "M5.5 1.75v3M10.5 1.75v3M3.5 4.75h9V7.5a4.5 4.5 0 0 1-9 0ZM8 12v2.25" }],
  plus: [{ path: "M8 3v10M3 8h10" }],
  power: [{ path: "M8 2v5.5M4.6 4.2a5.25 5.25 0 1 0 6.8 0" }],
  pulse: [{ path: "M1.5 8h3l2-5 3 10 2-5h3" }],
  queue: [{ path: "M2.5 4h11M2.5 8h11M2.5 12h5" }],
  right: [{ path: "m6 4 4 4-4 4" }],
  run: [{ circle: [8, 8, 6.25], class: "faint" }, { path: "M8 1.75A6.25 6.25 0 0 1 14.25 8", class: "spin" }, { path: "M6.5 5.2v5.6L11 8Z", class: "f" }],
  search: [{ circle: [7, 7, 4.5] }, { path: "m10.5 10.5 3.5 3.5" }],
  seen: [{ circle: [8, 8, 6.25] }, { path: "m5.3 8.2 1.9 1.9 3.5-4" }],
  send: [{ path: "M8 13V3.5M4 7l4-4 4 4" }],
  start: [{ path: "M2 8h7M6 4.5 9.5 8 6 11.5M9 2.25h4c.4 0 .75.35.75.75v10c0 .4-.35.75-.75.75H9" }],
  steer: [{ path: "M3 13V8.5a2.5 2.5 0 0 1 2.5-2.5H13M10 3l3 3-3 3" }],
  stop: [{ rect: [4, 4, 8, 8, 1], class: "f" }],
  sun: [{ circle: [8, 8, 6.25] }, { path: "M8 1.75a6.25 6.25 0 0 1 0 12.5Z", class: "f" }],
  term: [{ rect: [1.75, 2.75, 12.5, 10.5, 1.5] }, { path: "m4.5 6 2 2-2 2M8.5 10.5h3" }],
  think: [{ path: "M2 4h12M2 8h8M2 12h5", class: "faint" }],
  unknown: [{ circle: [8, 8, 6.25], class: "dashed" }, { path: "M6.3 6.5c.1-1 .8-1.6 1.7-1.6 1 0 1.7.6 1.7 1.5 0 1.2-1.7 1.3-1.7 2.5" }, { circle: [8, 11, 0.9], class: "f" }],
  wait: [{ path: "M4 1.75h8M4 14.25h8M4.75 1.75c0 3.5 3.25 4 3.25 6.25s-3.25 2.75-3.25 6.25M11.25 1.75c0 3.5-3.25 4-3.25 6.25s3.25 2.75 3.25 6.25" }],
} satisfies Record<string, Shape[]>;

export type IconName = keyof typeof ICONS;
