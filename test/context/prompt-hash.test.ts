import { expect, it } from "vitest";
import { shortHash } from "../../src/base/index.ts";
import { promptHashOf } from "../../src/context/index.ts";
import type { Message } from "../../src/state/index.ts";

const message = (id: string, content = `words of ${id}`): Message => ({
  id,
  role: "user",
  createdAt: 0,
  content,
  origin: "user",
});

/** The hash by its definition, computed without cached digests. */
function hashOf(messages: readonly Message[]): string {
  const digests = messages.map(({ role, content }) => shortHash(JSON.stringify([role, content, null])));
  return shortHash(digests.join(""));
}

it("a prompt's hash is the same whether it grew message by message, branched, or was built at once", () => {
  const messages: Message[] = [];
  for (let index = 0; index < 150; index += 1) {
    messages.push(message(`m${index}`));
    expect(promptHashOf(messages)).toBe(hashOf(messages));
    expect(promptHashOf(messages)).toBe(hashOf(messages));
  }
  for (const other of ["one", "another"]) {
    const branch = [...messages, message(other)];
    expect(promptHashOf(branch)).toBe(hashOf(branch));
  }
  const changed = messages.with(7, message("m7", "other words"));
  expect(promptHashOf(changed)).toBe(hashOf(changed));
  expect(promptHashOf(messages.slice(0, 40))).toBe(hashOf(messages.slice(0, 40)));
});
