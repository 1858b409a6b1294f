import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  type AgentTool,
  askUser,
  defineAgent,
  defineTool,
  InvalidInputError,
  subagent,
} from "../../src/index.ts";
import {
  scriptedModel,
  simulate,
  type SimulatedProgram,
  type SimulatedRun,
  type SimulatedSurroundings,
  type SimulationCase,
  type SimulationReport,
} from "../../src/testing/index.ts";
import { classicValues } from "../support/wrong-values.ts";

const model = scriptedModel("never asked");
const order = z.object({ order: z.string(), amount: z.int().min(1).max(100) });
const mail = { name: "mail", description: "Sends a mail.", parameters: z.object({ to: z.email() }) } as const;

/** A bank that refunds; it may ignore the keys of requests. */
class Bank {
  readonly #surroundings: SimulatedSurroundings;
  readonly #keys = new Set<string>();
  readonly #honoursKeys: boolean;
  paid = 0;

  constructor(surroundings: SimulatedSurroundings, honoursKeys = true) {
    this.#surroundings = surroundings;
    this.#honoursKeys = honoursKeys;
  }

  get clock(): SimulatedSurroundings["clock"] {
    return this.#surroundings.clock;
  }

  async refund(details: { readonly order: string; readonly amount: number }, key: string): Promise<string> {
    if (!this.#honoursKeys || !this.#keys.has(key)) {
      this.#keys.add(key);
      this.paid += details.amount;
      this.#surroundings.effect("refund", details);
    }
    return `refunded ${details.order}`;
  }

  mail(to: string): void {
    this.#surroundings.effect("mail", { to });
  }
}

function refundTool(bank: Bank): AgentTool {
  return defineTool({
    name: "refund",
    description: "Pays the money back.",
    parameters: order,
    effect: "keyed",
    execute: async (given, run) => {
      await bank.clock.sleep(5, run.signal);
      return await bank.refund(given, run.idempotencyKey);
    },
  });
}

function mailTool(bank: Bank): AgentTool {
  return defineTool({
    ...mail,
    effect: "once",
    needsApproval: true,
    execute: async ({ to }, run) => {
      await bank.clock.sleep(5, run.signal);
      bank.mail(to);
      return "sent";
    },
  });
}

function agentOf(...tools: readonly AgentTool[]): AgentDefinition {
  return defineAgent({ name: "desk", model, instructions: "You serve the shop.", tools });
}

/** An agent without mistakes: every effect class, an approval, a question and a subagent. */
const rightCase: SimulationCase<Bank> = {
  world: (surroundings) => new Bank(surroundings),
  agent: (bank) => {
    const look = defineTool({
      name: "look",
      description: "Looks at an order.",
      parameters: z.object({ order: z.string(), since: z.iso.date().optional() }),
      effect: "none",
      execute: ({ order: id }) => ({ id, state: "open" }),
    });
    const reader = defineAgent({ name: "reader", model, tools: [look] });
    return agentOf(refundTool(bank), mailTool(bank), askUser(), subagent(reader));
  },
};

/** A case with one tool, made with the bank. */
function caseWith(tool: (bank: Bank) => AgentTool, honoursKeys = true): SimulationCase<Bank> {
  return { world: (surroundings) => new Bank(surroundings, honoursKeys), agent: (bank) => agentOf(tool(bank)) };
}

/** The report of a case that fails, and whose printed program fails in the same way. */
async function failing<World>(target: SimulationCase<World>, programs = 200): Promise<SimulationReport> {
  const report = await simulate(target, { programs });
  expect(report.faults).not.toEqual([]);
  expect(report.faults[0]).toMatch(new RegExp(`seed ${report.seed}`, "u"));
  const again = await simulate(target, { program: report.program ?? undefined });
  expect(again.faults).toEqual(report.faults.map((fault) => fault.replace(/; seed \d+| \(seed \d+\)/u, "")));
  return report;
}

const wrongValues = (isRight: (value: unknown) => boolean): readonly unknown[] =>
  classicValues().filter((value) => value !== undefined && !isRight(value));
const isWhole = (least: number) => (value: unknown) => Number.isSafeInteger(value) && Number(value) >= least;

const failedTurns = ({ turns }: Pick<SimulatedRun, "turns">): readonly string[] =>
  turns.filter(({ status }) => status === "failed").map(() => "a turn failed");

describe("a right agent", () => {
  test("has no faults in some hundred programs", async () => {
    const done: number[] = [];
    const report = await simulate(rightCase, { programs: 150, onProgress: (progress) => done.push(progress.done) });
    expect(report).toMatchObject({ programs: 150, faults: [], seed: null, program: null, test: null });
    for (const tool of ["look", "mail", "refund"]) expect(report.calls[tool]).toBeGreaterThan(50);
    expect(report.deaths).toBeGreaterThan(50);
    expect(report.decisions).toBeGreaterThan(50);
    expect(done).toHaveLength(150);
  });

  test("has no faults with a death at every moment", async () => {
    const report = await simulate(rightCase, { programs: 1, kills: "every", seed: 5 });
    expect(report.faults).toEqual([]);
    expect(report.deaths).toBeGreaterThan(20);
  });

  test("has no faults on SQLite", async () => {
    const report = await simulate(rightCase, { programs: 10, on: "sqlite" });
    expect(report.faults).toEqual([]);
    expect(report.deaths).toBeGreaterThan(2);
  });

  test("is played in the same way for the same seed", async () => {
    const options = { programs: 20, seed: 40 };
    expect(await simulate(rightCase, options)).toEqual(await simulate(rightCase, options));
  });

  test("stays within its budget, also as a definition alone", async () => {
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: () => "seen",
    });
    const report = await simulate(agentOf(look), { programs: 40, budget: { maxSteps: 2, maxToolCalls: 2 } });
    expect(report.faults).toEqual([]);
    expect(report.calls["look"]).toBeGreaterThan(20);
  });

  test("with an output schema ends with a fitting answer", async () => {
    const agent = defineAgent({
      name: "judge",
      model,
      output: z.object({ verdict: z.enum(["yes", "no"]), reason: z.string().min(3), score: z.int().min(0).max(10) }),
    });
    expect((await simulate(agent, { programs: 20, check: failedTurns })).faults).toEqual([]);
  });
});

describe("a broken tool is found:", () => {
  test("a keyed tool whose receiver ignores the key", async () => {
    const { faults, program, test: text } = await failing(caseWith(refundTool, false));
    expect(faults[0]).toMatch(
      /^`refund` took effect twice \(refund \{.*\}\): killed after the effect, before its result; class `keyed`, but the receiver ignored the key/u,
    );
    expect(program?.turns).toHaveLength(1);
    expect(program?.turns[0]?.answers.flatMap(({ calls }) => calls)).toHaveLength(1);
    expect(program?.deaths).toHaveLength(1);
    expect(text).toContain(JSON.stringify(program?.deaths[0]?.at));
  });

  test("a keyed tool that remembers its keys in memory only", async () => {
    const report = await failing({
      world: (surroundings: SimulatedSurroundings) => new Bank(surroundings, false),
      agent: (bank) => {
        const seen = new Set<string>();
        return agentOf(
          defineTool({
            name: "refund",
            description: "Pays the money back.",
            parameters: order,
            effect: "keyed",
            execute: async (given, run) => {
              if (seen.has(run.idempotencyKey)) return "refunded before";
              seen.add(run.idempotencyKey);
              return await bank.refund(given, run.idempotencyKey);
            },
          }),
        );
      },
    });
    expect(report.faults[0]).toMatch(/took effect twice .* killed after the effect/u);
  });

  test("a once tool that swallows the abort and acts later", async () => {
    const report = await failing(
      caseWith((bank) =>
        defineTool({
          ...mail,
          effect: "once",
          execute: async ({ to }, run) => {
            await bank.clock.sleep(1_000, run.signal).catch(() => undefined);
            bank.mail(to);
            return "sent";
          },
        }),
      ),
    );
    expect(report.faults[0]).toMatch(
      /^`mail` took effect \(mail \{.*\}\) after its call was aborted: it does not stop at `run.signal`/u,
    );
    expect(report.program?.acts.map(({ does }) => does)).toHaveLength(1);
  });

  test("a once tool whose reconcile lets it run again", async () => {
    const report = await failing(
      caseWith((bank) =>
        defineTool({
          ...mail,
          effect: "once",
          execute: ({ to }) => bank.mail(to),
          reconcile: async () => ({ resume: true }),
        }),
      ),
    );
    expect(report.faults[0]).toMatch(/killed after the effect, before its result; class `once`, but its `reconcile`/u);
  });

  test("a tool with state outside of the world", async () => {
    let calls = 0;
    const count = defineTool({
      name: "count",
      description: "Counts.",
      parameters: z.object({}),
      effect: "none",
      execute: () => {
        calls += 1;
        return `call ${calls}`;
      },
    });
    const report = await simulate(agentOf(count), { programs: 100 });
    expect(report.faults[0]).toMatch(/^the agent is not deterministic: .* the prompt of "desk" differed/u);
    expect(report.faults[0]).toMatch(/^- tool: call \d+$/mu);
    expect(report.program?.turns).toHaveLength(1);
  });

  test("a hook with random values", async () => {
    let draws = 0;
    const agent = defineAgent({
      name: "desk",
      model,
      hooks: {
        beforeLlm: (draft) => {
          draws += 1;
          draft.add({ role: "user", content: `Lucky number ${draws}` });
        },
      },
    });
    const report = await simulate(agent, { programs: 50 });
    expect(report.faults[0]).toMatch(/not deterministic/u);
    expect(report.faults[0]).toMatch(/^\+ user: Lucky number/mu);
  });

  test("a tool that never ends", async () => {
    const report = await failing(
      caseWith(() =>
        defineTool({
          name: "hang",
          description: "Hangs.",
          parameters: z.object({}),
          effect: "none",
          timeoutMs: 30_000,
          execute: () => Promise.withResolvers<string>().promise,
        }),
      ),
    );
    expect(report.faults[0]).toMatch(/^`hang` never ended: it was still running after its 30000 ms/u);
  });

  test("a tool that throws after its effect", async () => {
    const report = await failing(
      caseWith((bank) =>
        defineTool({
          name: "refund",
          description: "Pays the money back.",
          parameters: order,
          effect: "keyed",
          execute: async (given, run) => {
            await bank.refund(given, run.idempotencyKey);
            throw new Error("no receipt printer");
          },
        }),
      ),
    );
    expect(report.faults[0]).toMatch(
      /^`refund` took effect \(refund \{.*\}\) and then threw "no receipt printer": the model was told that the call failed/u,
    );
  });

  test("an approved tool that does something else than was approved", async () => {
    const report = await failing(
      caseWith((bank) =>
        defineTool({
          name: "refund",
          description: "Pays the money back.",
          parameters: order,
          effect: "keyed",
          needsApproval: true,
          execute: async ({ order: id, amount }, run) =>
            await bank.refund({ order: id, amount: amount + 1 }, run.idempotencyKey),
        }),
      ),
    );
    expect(report.faults[0]).toMatch(/^`refund` did something else than was approved: amount was \d+ and became \d+/u);
  });

  test("a tool of class none with an effect", async () => {
    const report = await failing(
      caseWith((bank) =>
        defineTool({
          ...mail,
          effect: "none",
          execute: ({ to }) => bank.mail(to),
        }),
      ),
    );
    expect(report.faults[0]).toMatch(/^`mail` took effect .*, but its class is `none`/u);
  });

  test("a tool that acts twice in one run", async () => {
    const report = await failing(
      caseWith((bank) =>
        defineTool({
          ...mail,
          effect: "once",
          execute: ({ to }) => {
            bank.mail(to);
            bank.mail(to);
          },
        }),
      ),
    );
    expect(report.faults[0]).toMatch(/^`mail` took effect twice \(mail .*\): in a single run of its code/u);
  });

  test("a hook that fails", async () => {
    const agent = defineAgent({
      name: "desk",
      model,
      hooks: {
        beforeLlm: () => {
          throw new Error("no such table");
        },
      },
    });
    const report = await simulate(agent, { programs: 5 });
    expect(report.faults[0]).toMatch(/^turn 1 failed: the hook beforeLlm of "agent": no such table/u);
  });

  test("by the test's own check", async () => {
    const report = await simulate(rightCase, {
      programs: 50,
      check: ({ world, effects, calls, turns }) => {
        expect(turns.length).toBeGreaterThan(0);
        expect(calls.length).toBeGreaterThanOrEqual(0);
        if (world.paid > 0) return [`${world.paid} dollars were paid in ${effects.length} effects`];
        return undefined;
      },
    });
    expect(report.faults[0]).toMatch(/^check: \d+ dollars were paid in \d+ effects; seed \d+$/u);
    const thrown = await simulate(rightCase, {
      programs: 5,
      check: () => {
        throw new Error("not like this");
      },
    });
    expect(thrown.faults).toEqual(["check: not like this; seed 1"]);
  });
});

describe("simulate() refuses", () => {
  const none: SimulatedProgram = { turns: [], subagents: {}, decisions: [], acts: [], deaths: [] };

  test.each([
    ["programs", wrongValues(isWhole(1))],
    ["seed", wrongValues(isWhole(0))],
    ["program", wrongValues(() => false)],
    [
      "inputs",
      wrongValues((value) => Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string")),
    ],
    ["budget", [0, "much", { maxSteps: -1 }, { maxDollars: 1 }]],
    ["kills", wrongValues(() => false)],
    ["on", wrongValues(() => false)],
    ["check", wrongValues((value) => typeof value === "function")],
    ["maxShrinks", wrongValues(isWhole(0))],
    ["onProgress", wrongValues((value) => typeof value === "function")],
    ["arguments", [0, "x", [], { refund: [] }, { refund: {} }, { refund: [1] }, { refund: [new Date()] }]],
  ])("wrong values of %s", async (name, values) => {
    for (const value of values) {
      const refused = simulate(rightCase, { [name]: value });
      await expect(refused, name).rejects.toThrow(InvalidInputError);
      await expect(refused).rejects.toThrow(new RegExp(`^(?:simulate\\(\\): )?${name}`, "u"));
    }
  });

  test("unknown options, with the nearest one", async () => {
    await expect(simulate(rightCase, { runs: 5 } as object)).rejects.toThrow(/programs/u);
    await expect(simulate({ ...rightCase, definition: 1 } as never)).rejects.toThrow(/agent/u);
  });

  test("values that are no agent", async () => {
    for (const value of [undefined, null, 0, "desk", [], {}, { agent: () => 1 }, { world: 1, agent: 2 }]) {
      await expect(simulate(value as never)).rejects.toThrow(InvalidInputError);
    }
    await expect(simulate({ world: () => 1, agent: () => 1 as never })).rejects.toThrow(/agent\(\) returns/u);
  });

  test("programs that are none", async () => {
    const wrong = { ...none, deaths: [{ at: "lunch", hit: 1 }] } as unknown as SimulatedProgram;
    await expect(simulate(rightCase, { program: wrong })).rejects.toThrow(/^simulate\(\): program.deaths.0.at/u);
  });

  test("tools for which no arguments can be generated, unless the test gives some", async () => {
    const agent = agentOf(
      defineTool({
        name: "track",
        description: "Tracks a parcel.",
        parameters: z.object({ parcel: z.string().regex(/^[A-Z]{2}\d{9}$/u) }),
        effect: "none",
        execute: ({ parcel }) => parcel,
      }),
    );
    await expect(simulate(agent)).rejects.toThrow(/none of 200 generated arguments fits.*"track".*arguments:/u);
    await expect(simulate(agent, { arguments: { track: [{ parcel: "x" }] } })).rejects.toThrow(/does not fit/u);
    await expect(simulate(agent, { arguments: { trak: [{}] } })).rejects.toThrow(/no such tool; they have track/u);
    const report = await simulate(agent, { programs: 10, arguments: { track: [{ parcel: "AB123456789" }] } });
    expect(report.faults).toEqual([]);
    expect(report.calls["track"]).toBeGreaterThan(3);
  });

  test("effects that are no JSON", async () => {
    const report = await simulate(
      caseWith((bank) =>
        defineTool({
          name: "mail",
          description: "Sends a mail.",
          parameters: z.object({}),
          effect: "none",
          execute: () => bank.mail(1n as never),
        }),
      ),
      { programs: 3 },
    );
    expect(report.faults[0]).toMatch(/^effect\(\): details at to: .*; expected plain JSON/u);
  });
});
