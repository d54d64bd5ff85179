// Markdown as a tree of nodes, block by block. Pure.
//
// It produces data only: raw HTML stays text, images stay text, and which addresses may become links is decided here.
import type { RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmAutolinkLiteralFromMarkdown } from "mdast-util-gfm-autolink-literal";
import { gfmStrikethroughFromMarkdown } from "mdast-util-gfm-strikethrough";
import { gfmTableFromMarkdown } from "mdast-util-gfm-table";
import { gfmTaskListItemFromMarkdown } from "mdast-util-gfm-task-list-item";
import { gfmAutolinkLiteral } from "micromark-extension-gfm-autolink-literal";
import { gfmStrikethrough } from "micromark-extension-gfm-strikethrough";
import { gfmTable } from "micromark-extension-gfm-table";
import { gfmTaskListItem } from "micromark-extension-gfm-task-list-item";
import { prose } from "../visible";

export interface Block {
  /** Where it begins in the text: its name as long as the text only grows. */
  start: number;
  node: RootContent;
}

/** Longer blocks are shown as they were written: parsing them at every change would hold up the window. */
export const LONGEST_BLOCK = 60_000;
/** Deeper nesting is shown as text. */
export const DEEPEST = 24;

const SYNTAX = [gfmAutolinkLiteral(), gfmStrikethrough({ singleTilde: false }), gfmTable(), gfmTaskListItem()];
const TREE = [gfmAutolinkLiteralFromMarkdown(), gfmStrikethroughFromMarkdown(), gfmTableFromMarkdown(), gfmTaskListItemFromMarkdown()];

function plain(text: string): RootContent {
  return { type: "code", value: text };
}

/** A line that opens more containers than any reader follows makes the parser slow. */
const ABYSS = /^(?:[ \t]*(?:>|[*+-][ \t]|\d{1,9}[.)][ \t])){40,}/m;

export function blocks(text: string, offset = 0): Block[] {
  if (text.trim() === "") return [];
  if (text.length > LONGEST_BLOCK || ABYSS.test(text)) return [{ start: offset, node: plain(text) }];
  try {
    return fromMarkdown(text, { extensions: SYNTAX, mdastExtensions: TREE }).children
      .map((node) => ({ start: offset + (node.position?.start.offset ?? 0), node }));
  } catch {
    return [{ start: offset, node: plain(text) }];
  }
}

/** The blocks of a text that grows: only the open one, the last, is parsed again. */
export class GrowingText {
  private text = "";
  private known: Block[] = [];

  update(text: string): Block[] {
    if (text === this.text) return this.known;
    const open = this.known.at(-1)?.start ?? 0;
    if (this.known.length > 0 && text.startsWith(this.text)) {
      this.known = [...this.known.slice(0, -1), ...blocks(text.slice(open), open)];
    } else {
      this.known = blocks(text);
    }
    this.text = text;
    return this.known;
  }
}

/** The address if a person may be asked to open it, else null. Whether it is opened is decided by the shell. */
export function link(url: string): string | null {
  if (!/^(https?:\/\/|mailto:)/i.test(url) || /[\u0000-\u0020\u007f-\u009f]/.test(url)) return null;
  try {
    const { protocol, hostname } = new URL(url);
    if (protocol === "mailto:") return url;
    return (protocol === "https:" || protocol === "http:") && hostname !== "" ? url : null;
  } catch {
    return null;
  }
}

export const text = prose;
