import type { PackedContents, PackedHead, FeedRow } from "../feed/wire.ts";
import { Slices } from "./slices.ts";

/** The id of the element that holds the data: lines of `packed-page.ts`, gzip, base64. */
const DATA_ELEMENT = "troupe-data";
/** Letters of base64 that are decoded at once: a multiple of four. */
const LETTERS = 65_536;

/** The run in this page; undefined: it comes from a server. */
export async function runInPage(): Promise<PackedRun | undefined> {
  const packed = document.getElementById(DATA_ELEMENT)?.textContent?.trim() ?? "";
  if (packed === "") return undefined;
  const lines = linesIn(packed);
  const { value: first } = await lines.next();
  if (!first?.startsWith("head ")) throw new Error("The data of this page is not whole; export the run again.");
  return new PackedRun(valueOf(first) as PackedHead, lines);
}

/**
 * A run that is read from its page line by line, in slices.
 * Owns: rows and contents. Contents stay text until somebody asks for them: parsed, they take most of the time and memory.
 */
export class PackedRun {
  readonly head: PackedHead;
  /** Those that have been read so far. */
  readonly rows: FeedRow[] = [];
  readonly #contents = new Map<string, string>();
  readonly #whole: Promise<void>;
  #moreRows = Promise.withResolvers<void>();

  constructor(head: PackedHead, lines: AsyncIterable<string>) {
    this.head = head;
    this.#whole = this.#read(lines);
  }

  get hasAllRows(): boolean {
    return this.rows.length >= this.head.rowCount;
  }

  /** Resolves when more rows have been read. Rejects where the data ends too soon. */
  async moreRows(): Promise<void> {
    await Promise.race([this.#moreRows.promise, this.#whole]);
  }

  /** Undefined: there are none for this id. */
  async contentsOf<Value>(name: PackedContents, id: string): Promise<Value | undefined> {
    await this.#whole;
    const line = this.#contents.get(`${name} ${encodeURIComponent(id)}`);
    return line === undefined ? undefined : (valueOf(line) as Value);
  }

  async #read(lines: AsyncIterable<string>): Promise<void> {
    for await (const line of lines) {
      if (line.startsWith("rows ")) {
        for (const row of valueOf(line) as FeedRow[]) this.rows.push(row);
        this.#moreRows.resolve();
        this.#moreRows = Promise.withResolvers();
      } else this.#contents.set(line.slice(0, valueStart(line) - 1), line);
    }
    if (!this.hasAllRows) throw new Error("The data of this page is not whole; export the run again.");
  }
}

function valueStart(line: string): number {
  return line.indexOf(" ", line.indexOf(" ") + 1) + 1;
}

function valueOf(line: string): unknown {
  return JSON.parse(line.slice(valueStart(line)));
}

async function* linesIn(packed: string): AsyncGenerator<string, undefined> {
  const slices = new Slices();
  let from = 0;
  const bytes = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      if (from >= packed.length) return controller.close();
      const letters = atob(packed.slice(from, from + LETTERS));
      const part = new Uint8Array(letters.length);
      for (let index = 0; index < letters.length; index += 1) part[index] = letters.charCodeAt(index);
      from += LETTERS;
      return controller.enqueue(part);
    },
  });
  const reader = bytes.pipeThrough(new DecompressionStream("gzip")).pipeThrough(new TextDecoderStream()).getReader();
  // A line may be many pieces long.
  let pieces: string[] = [];
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) {
    const [end = "", ...lines] = (value ?? "").split("\n");
    pieces.push(end);
    for (const next of lines) {
      yield pieces.join("");
      pieces = [next];
      await slices.pause();
    }
    await slices.pause();
  }
  const last = pieces.join("");
  if (last !== "") yield last;
  return undefined;
}
