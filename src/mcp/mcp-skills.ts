import type { Skill } from "@modelcontextprotocol/client/ext/skills";
import { visible } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { ListedSkill, RunContext, SkillContent, SkillSource } from "../tools/index.ts";
import { withLogin } from "./login-requests.ts";
import { requesterOf } from "./mcp-resources.ts";
import { McpServerError } from "./mcp-server-error.ts";
import { loadSkillSdk } from "./skill-sdk.ts";
import type { ToolSource } from "./tool-source.ts";

/** Bytes of the largest file of a skill. */
const LARGEST_FILE = 2_000_000;
/** Most refused entries that a warning names. */
const MOST_NAMED = 5;

/**
 * The skills of a server, by the extension `io.modelcontextprotocol/skills`. A skill is what the server has listed, with the digests of its
 * files: a file that has another digest when it is loaded is refused.
 */
export function skillsOf(source: ToolSource): SkillSource {
  const { options: server, pool, secrets, authorization, forget } = source;
  const ask = requesterOf(source);
  const entries = new WeakMap<ListedSkill, Skill>();
  const load = async (skill: Skill, file: string | undefined, run: RunContext): Promise<SkillContent> => {
    const { SkillsClient, SkillVerificationError } = await loadSkillSdk();
    const what = `the skill ${JSON.stringify(skill.frontmatter.name)} cannot be loaded`;
    const owner = { actorId: run.actorId, signal: run.signal };
    return await ask(what, owner, async (client, request) => {
      try {
        const read = await new SkillsClient(client).read(skill, file, request);
        if (read.bytes.byteLength > LARGEST_FILE) throw tooLarge(read.bytes.byteLength);
        const text = secrets.redact(read.body ?? textOf(read.bytes));
        return file === undefined ? { text: text.trim(), files: filesOf(skill) } : { text };
      } catch (error) {
        throw error instanceof SkillVerificationError ? refusal(error) : error;
      }
    });
  };
  const skills: SkillSource = {
    name: server.name,
    list: async () => {
      const { SkillsClient } = await loadSkillSdk();
      return await ask("the skills cannot be listed", {}, async (client, request) => {
        const reader = new SkillsClient(client, { skipInvalid: true });
        if (!reader.supported) return [];
        const { skills: listed, invalid } = await reader.list({}, request);
        warn(
          server.name,
          invalid.map(({ uri = "an entry", reason }) => secrets.redact(`${uri}: ${reason}`)),
        );
        return listed.map((skill) => {
          const { name, description } = skill.frontmatter;
          const shown = Object.freeze({ name: secrets.redact(name), description: secrets.redact(description) });
          entries.set(shown, skill);
          return shown;
        });
      });
    },
    load: async (listed, file, run) => {
      const skill = entries.get(listed);
      if (!skill) {
        throw new InvalidInputError(`mcp("${server.name}").skills.load() expects a skill that list() has returned`);
      }
      if (file !== undefined) assertSmall(skill, file);
      return await withLogin(authorization, async (_args, called) => await load(skill, file, called))({}, run);
    },
    holdConnections: pool.hold,
    ...(forget === undefined ? {} : { forget }),
  };
  return Object.freeze(skills);
}

/** Refuses a file that the server declares as too large before it is sent. */
function assertSmall({ resources }: Skill, file: string): void {
  if (resources === "dynamic") return;
  const size = resources.find(({ uri }) => uri.endsWith(`/${file}`))?.size ?? 0;
  if (size > LARGEST_FILE) throw tooLarge(size);
}

/** The text of a file. A server may send binary files as text too. */
function textOf(bytes: Uint8Array): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    if (!text.includes("\0")) return text;
  } catch {
    // It is refused like one with NUL.
  }
  throw new McpServerError(`it is not a text file in UTF-8 (${bytes.byteLength} bytes)`);
}

function tooLarge(size: number): McpServerError {
  return new McpServerError(`the file has ${size} bytes, and at most ${LARGEST_FILE} are read`);
}

/** Paths of the files besides `SKILL.md`, as they are in the URIs. */
function filesOf({ uri, resources }: Skill): readonly string[] {
  if (resources === "dynamic") return [];
  const root = uri.slice(0, uri.lastIndexOf("/") + 1);
  return resources
    .filter((file) => file.uri.startsWith(root) && file.uri !== uri)
    .map((file) => visible(file.uri.slice(root.length)))
    .sort();
}

function refusal({ reason, message }: { readonly reason: string; readonly message: string }): McpServerError {
  if (reason === "unlisted") return new McpServerError(`${message}; its instructions name its files`);
  return new McpServerError(
    `${message}. The server has changed it since this program started; a new start lists it anew`,
  );
}

function warn(server: string, refused: readonly string[]): void {
  if (refused.length === 0) return;
  const named = refused.slice(0, MOST_NAMED).map((one) => visible(one).slice(0, 500));
  const more = refused.length > MOST_NAMED ? [`and ${refused.length - MOST_NAMED} more`] : [];
  process.emitWarning(`mcp("${server}"): skills are left out: ${[...named, ...more].join("; ")}`, {
    code: "TROUPE_SKILLS",
  });
}
