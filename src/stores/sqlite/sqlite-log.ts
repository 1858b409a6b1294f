import { closeSync, ftruncateSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";
import { isNoSpace } from "../../base/index.ts";
import { CorruptRecordError, StoreUnavailableError } from "../../errors/index.ts";
import { noSpaceLeft } from "./sqlite-errors.ts";
import type { Statement, StoredValue, Write } from "./sqlite-statement.ts";

/** Bytes before the text of a record: its length and its checksum. */
const FRAME = 8;
/** A text of one character takes at most three bytes of UTF-8. */
const BYTES_PER_CHARACTER = 3;

/** Beside the database, as SQLite's own log is. */
export function logPathOf(databasePath: string): string {
  return `${databasePath}-log`;
}

/**
 * The writes of committed transactions that are not in the database yet, in a file beside it.
 * Owns: the file. Does not own: what is in the database, and who may write to the file (`sqlite-presence.ts`).
 *
 * A record is a transaction: a number, then its statements with their values. It is written with one call, so that it
 * survives the end of the process like a page of SQLite's log. Records are numbered without gaps; once they are in the
 * database they are cut off. A statement that an earlier record of the file has is named by its place among them.
 *
 * Invariants
 * 1. A record that was written whole is read whole; one that was not ends the log.
 * 2. The file begins with the name of its writer, so that nobody reads the log of another one.
 */
export class SqliteLog {
  readonly #path: string;
  readonly #file: number;
  readonly #start: number;
  #end: number;
  #bytes = Buffer.allocUnsafe(16_384);
  /** The places of the statements that the file has in full. */
  readonly #places = new Map<Statement, number>();

  /** Replaces the file that is there. Throws `StoreUnavailableError` if it cannot be made. */
  static create(path: string, writer: string): SqliteLog {
    try {
      remove(path);
      // A file of its own, because whoever wrote to the one before may still do so.
      const file = openSync(path, "wx", 0o600);
      const head = headOf(writer);
      writeSync(file, head);
      return new SqliteLog(path, file, Buffer.byteLength(head));
    } catch (error) {
      throw unavailable(path, error);
    }
  }

  /** Undefined where no file can be made. */
  static tryCreate(path: string, writer: string): SqliteLog | undefined {
    try {
      return SqliteLog.create(path, writer);
    } catch {
      return undefined;
    }
  }

  private constructor(path: string, file: number, start: number) {
    this.#path = path;
    this.#file = file;
    this.#start = start;
    this.#end = start;
  }

  /** Bytes of the records that are in no database yet. */
  get size(): number {
    return this.#end - this.#start;
  }

  /** Adds the writes from `start` on. Throws `StoreUnavailableError` if they could not be written; then nothing is added. */
  append(number: number, writes: readonly Write[], start: number): void {
    const known = this.#places.size;
    let text = `${number};${writes.length - start};`;
    for (let index = start; index < writes.length; index += 1) {
      const { statement, values } = writes[index] as Write;
      const place = this.#places.get(statement);
      if (place === undefined) {
        this.#places.set(statement, this.#places.size);
        text += `s${statement.sql.length}:${statement.sql}`;
      } else text += `n${place};`;
      text += `${values.length};`;
      for (const value of values) text += textOfValue(value);
    }
    const most = FRAME + text.length * BYTES_PER_CHARACTER;
    if (this.#bytes.length < most) this.#bytes = Buffer.allocUnsafe(most * 2);
    const length = this.#bytes.write(text, FRAME, "utf8");
    this.#bytes.writeUInt32LE(length, 0);
    this.#bytes.writeUInt32LE(crc32(this.#bytes.subarray(FRAME, FRAME + length)), 4);
    this.#write(FRAME + length, known);
  }

  /** All records so far are in the database. */
  restart(): void {
    this.#end = this.#start;
    this.#places.clear();
    // What was cleared in the database is not to stay here.
    this.#cutOff();
  }

  close(): void {
    closeSync(this.#file);
  }

  /** `known`: how many statements the file has in full if this is not written. */
  #write(length: number, known: number): void {
    try {
      for (let done = 0; done < length; ) {
        done += writeSync(this.#file, this.#bytes, done, length - done, this.#end + done);
      }
    } catch (error) {
      // A part of it may have taken the last room.
      this.#cutOff();
      for (const [statement, place] of this.#places) if (place >= known) this.#places.delete(statement);
      throw unavailable(this.#path, error);
    }
    this.#end += length;
  }

  #cutOff(): void {
    try {
      ftruncateSync(this.#file, this.#end);
    } catch {
      // What is behind the end is no whole record, or one that is in the database.
    }
  }
}

export function removeLog(path: string): void {
  try {
    remove(path);
  } catch (error) {
    throw unavailable(path, error);
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

export interface StoredWrite {
  readonly sql: string;
  readonly values: readonly StoredValue[];
}

export interface LogRecord {
  readonly number: number;
  readonly writes: readonly StoredWrite[];
}

/**
 * The records of a writer that follow record `after`, in their order. None if the file is not there or another writer's:
 * then it was lost, as after a power cut.
 */
export function recordsAfter(path: string, writer: string, after: number): LogRecord[] {
  const bytes = bytesOf(path);
  const head = Buffer.from(headOf(writer));
  if (!bytes.subarray(0, head.length).equals(head)) return [];
  const records: LogRecord[] = [];
  const statements: string[] = [];
  let last: number | undefined;
  for (let at = head.length; at + FRAME <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    const content = bytes.subarray(at + FRAME, at + FRAME + length);
    if (content.length < length || crc32(content) !== bytes.readUInt32LE(at + 4)) break;
    const reader = new RecordReader(content.toString("utf8"), statements, path);
    const number = reader.number();
    // What is left of an earlier log names statements by places of its own.
    if (last !== undefined && number !== last + 1) break;
    if (last === undefined && number > after + 1) break;
    last = number;
    const writes = reader.writes();
    if (number > after) records.push({ number, writes });
    at += FRAME + length;
  }
  return records;
}

function bytesOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return Buffer.alloc(0);
    throw unavailable(path, error);
  }
}

function headOf(writer: string): string {
  return `troupe log 1 ${writer}\n`;
}

function textOfValue(value: StoredValue): string {
  if (typeof value === "string") return `s${value.length}:${value}`;
  return value === null ? "z" : `n${value};`;
}

/** Reads the text of one record; its checksum was right, so whatever does not fit was written by another program. */
class RecordReader {
  readonly #text: string;
  /** Those that the records before have in full, and this one's. */
  readonly #statements: string[];
  readonly #path: string;
  #at = 0;

  constructor(text: string, statements: string[], path: string) {
    this.#text = text;
    this.#statements = statements;
    this.#path = path;
  }

  number(): number {
    return this.#count(";");
  }

  /** Must be called after `number`. */
  writes(): StoredWrite[] {
    const count = this.#count(";");
    const writes: StoredWrite[] = [];
    for (let index = 0; index < count; index += 1) {
      const sql = this.#statement();
      const values = Array.from({ length: this.#count(";") }, () => this.#value());
      writes.push({ sql, values });
    }
    if (this.#at !== this.#text.length) throw this.#foreign();
    return writes;
  }

  #statement(): string {
    const kind = this.#part(1);
    if (kind === "n") {
      const sql = this.#statements[this.#count(";")];
      if (sql === undefined) throw this.#foreign();
      return sql;
    }
    if (kind !== "s") throw this.#foreign();
    const sql = this.#part(this.#count(":"));
    if (!/^\s*(INSERT|UPDATE|DELETE)\b/.test(sql)) throw this.#foreign();
    this.#statements.push(sql);
    return sql;
  }

  #value(): StoredValue {
    const kind = this.#part(1);
    if (kind === "z") return null;
    if (kind === "s") return this.#part(this.#count(":"));
    if (kind !== "n") throw this.#foreign();
    const value = Number(this.#until(";"));
    if (Number.isNaN(value)) throw this.#foreign();
    return value;
  }

  #count(end: string): number {
    const text = this.#until(end);
    if (!/^\d+$/.test(text)) throw this.#foreign();
    return Number(text);
  }

  #until(end: string): string {
    const at = this.#text.indexOf(end, this.#at);
    if (at < 0) throw this.#foreign();
    const text = this.#text.slice(this.#at, at);
    this.#at = at + 1;
    return text;
  }

  #part(length: number): string {
    const text = this.#text.slice(this.#at, this.#at + length);
    if (text.length < length) throw this.#foreign();
    this.#at += length;
    return text;
  }

  #foreign(): CorruptRecordError {
    return new CorruptRecordError(`the log ${this.#path} was not written by this package; it is left as it is`);
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

function unavailable(path: string, error: unknown): StoreUnavailableError {
  if (isNoSpace(error)) return noSpaceLeft(path, error);
  const words = error instanceof Error ? error.message : String(error);
  return new StoreUnavailableError(`the store's log ${path} is not available (SQLITE_IOERR: ${words})`, {
    details: { path, code: "SQLITE_IOERR" },
    cause: error,
  });
}
