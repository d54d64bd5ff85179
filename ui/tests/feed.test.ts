import { describe, expect, it } from "vitest";
import { longEntry } from "../src/lib/demo/data";
import { Feed, KEPT } from "../src/lib/transcript/feed";
import { Heights } from "../src/lib/transcript/heights";
import type { Entry } from "../src/lib/wire";

const say = (ordinal: number, text = "", id = `e${ordinal}`): Entry => ({ ordinal, id, turn: "t", completed: false, at: 0, body: { type: "agentMessage", text, finalAnswer: false } });
const page = (entries: Entry[], before: number | null = null) => ({ type: "page" as const, page: { session: "1", entries, before, total: entries.length, changes: [] } });

describe("the feed", () => {
  it("begins anew with a page, takes new entries, and replaces changed ones", () => {
    const feed = new Feed();
    expect(feed.apply([page([say(1), say(2)])])).toEqual({ kind: "reset" });
    expect(feed.apply([{ type: "upsert", entry: say(3) }])).toEqual({ kind: "tail", added: 1, from: 2 });
    expect(feed.apply([{ type: "upsert", entry: say(2, "changed") }])).toEqual({ kind: "tail", added: 0, from: 1 });
    expect(feed.entries.map((e) => e.ordinal)).toEqual([1, 2, 3]);
  });

  it("appends deltas to a copy, so that only that row redraws", () => {
    const feed = new Feed();
    feed.apply([page([say(1, "a"), say(2, "b")])]);
    const [first, second] = feed.entries;
    feed.apply([{ type: "delta", id: "e2", stream: "agentMessage", text: "c" }, { type: "delta", id: "e2", stream: "agentMessage", text: "d" }]);
    expect(feed.entries[0]).toBe(first);
    expect(feed.entries[1]).not.toBe(second);
    expect(feed.entries[1]!.body).toMatchObject({ text: "bcd" });
    expect(second!.body).toMatchObject({ text: "b" });
  });

  it("ignores deltas for what it does not have or that do not fit", () => {
    const feed = new Feed();
    feed.apply([page([say(1, "a")])]);
    expect(feed.apply([{ type: "delta", id: "gone", stream: "agentMessage", text: "x" }])).toEqual({ kind: "none" });
    expect(feed.apply([{ type: "delta", id: "e1", stream: "commandOutput", text: "x" }])).toEqual({ kind: "none" });
    expect(feed.entries[0]!.body).toMatchObject({ text: "a" });
  });

  it("puts an entry between others where its ordinal says", () => {
    const feed = new Feed();
    feed.apply([page([say(1), say(5)])]);
    expect(feed.apply([{ type: "upsert", entry: say(3) }])).toEqual({ kind: "tail", added: 1, from: 1 });
    expect(feed.entries.map((e) => e.ordinal)).toEqual([1, 3, 5]);
  });

  it("leaves an entry older than what is loaded to its page", () => {
    const feed = new Feed();
    feed.apply([page([say(10), say(11)], 10)]);
    expect(feed.apply([{ type: "upsert", entry: say(4) }])).toEqual({ kind: "none" });
    expect(feed.prepend({ session: "1", entries: [say(4), say(9), say(10)], before: null, total: 4, changes: [] })).toBe(2);
    expect(feed.entries.map((e) => e.ordinal)).toEqual([4, 9, 10, 11]);
    expect(feed.before).toBeNull();
  });

  it("forgets the far beginning and can load it again", () => {
    const feed = new Feed();
    feed.apply([page(Array.from({ length: KEPT * 2 }, (_, i) => longEntry(i)))]);
    expect(feed.trim()).toBe(KEPT);
    expect(feed.entries).toHaveLength(KEPT);
    expect(feed.before).toBe(KEPT);
    expect(feed.trim()).toBe(0);
  });
});

describe("heights", () => {
  it("agree with plain sums, whatever is done", () => {
    let seed = 7;
    const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
    const heights = new Heights();
    let plain: number[] = [];
    heights.reset(0, () => 0);
    for (let step = 0; step < 2000; step++) {
      const what = random(20);
      if (what < 10) { const h = random(90); heights.push(h); plain.push(h); }
      else if (what < 16 && plain.length > 0) { const i = random(plain.length); const h = random(90); expect(heights.set(i, h)).toBe(h - plain[i]!); plain[i] = h; }
      else if (what === 16) { const n = random(30); heights.unshift(n, (i) => i + 1); plain = [...Array.from({ length: n }, (_, i) => i + 1), ...plain]; }
      else if (what === 17 && plain.length > 10) { const n = random(10); heights.shift(n); plain = plain.slice(n); }
      const at = random(plain.length + 1);
      expect(heights.offset(at)).toBe(plain.slice(0, at).reduce((a, b) => a + b, 0));
      expect(heights.total).toBe(plain.reduce((a, b) => a + b, 0));
      if (plain.length > 0) {
        const place = random(Math.max(1, heights.total + 50));
        let sum = 0;
        let want = 0;
        while (want < plain.length - 1 && sum + plain[want]! <= place) sum += plain[want++]!;
        expect(heights.at(place)).toBe(want);
      }
    }
  });
});
