/** Parts of a changelog: the introduction above the first version, and each version with its text. */
interface Parts {
  readonly introduction: string;
  readonly sections: readonly { readonly heading: string; readonly body: string }[];
}

function partsOf(changelog: string): Parts {
  const [introduction = "", ...rest] = changelog.split(/^## /m);
  const sections = rest.map((text) => {
    const end = text.indexOf("\n");
    return { heading: text.slice(0, end).trim(), body: text.slice(end).trim() };
  });
  return { introduction: introduction.trim(), sections };
}

/**
 * The changelog `before` a release, with the new release at its top: the text by changesets, then the text under
 * "Unreleased". `written` is the output of `changeset version` for `before`, which inserts its section below the title.
 */
export function releasedChangelog(before: string, written: string, version: string, date: string): string {
  const { introduction, sections } = partsOf(before);
  const ofChangesets = partsOf(written).sections.find(({ heading }) => heading === version);
  // The introduction is now below the section, because `changeset version` keeps only the title above it.
  const body = ofChangesets?.body.replace(introduction.replace(/^# .+\n+/, ""), "").trim();
  const unreleased = sections.find(({ heading }) => heading === "Unreleased")?.body;
  const release = { heading: `${version} – ${date}`, body: [body, unreleased].filter(Boolean).join("\n\n") };
  const others = sections.filter(({ heading }) => heading !== "Unreleased");
  return [introduction, ...[release, ...others].map((section) => `## ${section.heading}\n\n${section.body}`)]
    .join("\n\n")
    .concat("\n");
}
