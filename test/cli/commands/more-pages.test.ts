// The command below a page, run as it is printed, until there are no more pages.
import { describe, expect, test } from "vitest";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { troupe } from "../support/in-process.ts";
import { plantTrees } from "../support/many-trees.ts";

async function planted(count: number) {
  const path = temporaryFile("jobs.db");
  const stores = sqliteStores(path);
  const newestFirst = await plantTrees(stores, count);
  await stores.close();
  return { newestFirst, store: ["--store", path] };
}

/** All pages from this command line on, following the printed commands. */
async function follow(words: readonly string[]) {
  const pages: (readonly string[])[] = [];
  for (let next: readonly string[] | undefined = words; next; ) {
    const { out, notes, code } = await troupe(next);
    expect(code, notes.join("\n")).toBe(0);
    pages.push(out);
    const more = [...out, ...notes].find((line) => line.startsWith("More: npx troupe "));
    next = more?.replace("More: npx troupe ", "").split(" ");
  }
  return pages;
}

describe("the command below a page", () => {
  test("of `list` shows the next page, and totals are those of the page", async () => {
    const { newestFirst, store } = await planted(25);
    const pages = await follow(["list", "--limit", "10", ...store]);
    const ids = pages.flatMap((lines) => lines.flatMap((line) => /^job-\d+/.exec(line) ?? []));
    expect(ids).toEqual(newestFirst);
    expect(pages.map((lines) => lines.filter((line) => /request.* to decide/.test(line)))).toEqual([
      ["1 request to decide: see `requests`."],
      ["1 request to decide: see `requests`."],
      ["1 request to decide: see `requests`."],
    ]);
    expect(pages[0]?.at(-1)).toMatch(/^More: npx troupe list --limit 10 --after \d+:job-\d+ --store /);
  });

  test("of `requests` works too, and keeps --all", async () => {
    const { newestFirst, store } = await planted(35);
    const pages = await follow(["requests", "--all", "--limit", "3", ...store]);
    expect(pages[0]?.find((line) => line.startsWith("More: "))).toMatch(
      /requests --all --limit 3 --after job-\d+#1:1:0:1 --store /,
    );
    const agents = pages.flatMap((lines) => lines.flatMap((line) => /^(job-\d+)#/.exec(line)?.[1] ?? []));
    expect(agents).toEqual(newestFirst.toReversed().filter((_, index) => index % 10 === 0));
  });

  test("is on stderr with --json, and each line has its own cursor", async () => {
    const { newestFirst, store } = await planted(12);
    const { out, notes } = await troupe(["list", "--json", "--limit", "5", ...store]);
    const lines = out.map((line) => JSON.parse(line) as { readonly agentId: string; readonly cursor: string });
    expect(lines.map(({ agentId }) => agentId)).toEqual(newestFirst.slice(0, 5));
    expect(notes).toEqual([`More: npx troupe list --limit 5 --after ${lines[4]?.cursor} ${store.join(" ")}`]);
    const behind = await troupe(["list", "--json", "--after", lines[1]?.cursor ?? "", ...store]);
    expect(behind.out.map((line) => (JSON.parse(line) as { readonly agentId: string }).agentId)).toEqual(
      newestFirst.slice(2),
    );
    expect(behind.notes).toEqual([]);
  });

  test("is missing if a full page is the last one; a page behind the end is empty", async () => {
    const { newestFirst, store } = await planted(3);
    const { out } = await troupe(["list", "--limit", "3", "--json", ...store]);
    expect(out).toHaveLength(newestFirst.length);
    const { cursor } = JSON.parse(out[2] ?? "") as { readonly cursor: string };
    expect((await troupe(["list", "--after", cursor, ...store])).out).toEqual([
      `There are no more agents in ${store[1]}.`,
    ]);
  });

  test.each([
    [["list", "--after", "nowhere"], /after is "nowhere"/],
    [["requests", "--after", "nowhere"], /after is "nowhere", and no request of that id is stored/],
    [["list", "--limit", "0"], /Expected a whole number from 1 to 1000\./],
    [["requests", "--limit", "many"], /Expected a whole number from 1 to 1000\./],
  ])("%j is wrong usage", async (words, message) => {
    const { store } = await planted(1);
    const { code, out, notes } = await troupe([...words, ...store]);
    expect({ code, out }).toEqual({ code: 2, out: [] });
    expect(notes.join("\n")).toMatch(message);
  });
});
