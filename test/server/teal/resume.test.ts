import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type DecisionAttempt, defineAgent, defineTool, subagent } from "troupe";
import { scriptedModel } from "troupe/testing";
import { address, deletion, type Posted, type Teal, type TealJson, tealServed, text } from "./teal-served.ts";

const twoCalls = { toolCalls: [...deletion.toolCalls, ...deletion.toolCalls] };
const question = { toolCalls: [{ name: "ask_user", arguments: { question: "Which one?" } }] };

/** A task that waits, and the path to resume it. */
async function waiting(teal: Teal): Promise<{
  readonly ids: Pick<TealJson, "session_id" | "task_id" | "request_id">;
  readonly resume: string;
  readonly paused: Posted;
}> {
  const paused = await teal.post("", text("delete me"));
  expect(paused).toMatchObject({ status: 200, json: { status: "Paused" } });
  const { session_id, task_id, request_id } = paused.json;
  return { ids: { session_id, task_id, request_id }, resume: `/tealagents/v1alpha1/resume/${request_id}`, paused };
}

/** Relative to the URL of the agent. */
const approvalOf = ({ json }: { readonly json: TealJson }): string => String(json.approval_url).slice(address.length);

const completed = (output: string) => ({ output, source: "MathAgent:0.1", extra_data: null });
const rejected = { message: "Tool excecution rejected." };

describe("T5: pause and resume by request id", () => {
  test("a call that needs a person pauses the request, and shows the pending calls", async () => {
    const teal = await tealServed({ script: [deletion] });
    const { ids, resume, paused } = await waiting(teal);
    expect(paused.json).toEqual({
      ...ids,
      status: "Paused",
      content: {
        ...ids,
        message: "Human intervention required.",
        approval_url: `${address}${resume}?action=approve&calls=${ids.task_id}.1:1:0:1`,
        rejection_url: `${address}${resume}?action=reject`,
        tool_calls: [
          {
            inner_content: null,
            ai_model_id: null,
            metadata: {},
            content_type: "function_call",
            id: `${ids.task_id}#1:1:0:1`,
            index: 0,
            name: "sensitive_plugin-delete_user_data",
            function_name: "delete_user_data",
            plugin_name: "sensitive_plugin",
            arguments: '{"id":7}',
          },
        ],
      },
    });
    expect(teal.runs).toEqual([]);
  });

  test("approve runs the call once, however often it is sent; the answer is only the content", async () => {
    const teal = await tealServed({ script: [deletion, "gone"] });
    const { ids, resume } = await waiting(teal);
    const first = await teal.post(resume, { action: "approve" });
    expect([first.status, first.json]).toEqual([200, { ...ids, ...completed("gone"), token_usage: expect.anything() }]);
    const again = await teal.post(resume, { action: "approve" });
    expect(again).toMatchObject({ status: 200, json: first.json });
    expect(teal.runs).toEqual([{ id: 7 }]);
    const opposite = await teal.post(resume, { action: "reject" });
    expect(opposite).toMatchObject({
      status: 409,
      json: { detail: `The request was already approved by ann: ${ids.request_id}`, ...ids },
    });
  });

  test("reject refuses all calls and cancels the request; a repetition gets the same answer, a later approve is refused", async () => {
    const teal = await tealServed({ script: [twoCalls, "never shown"] });
    const { ids, resume } = await waiting(teal);
    const first = await teal.post(resume, { action: "reject", reason: "not mine" });
    expect([first.status, first.json]).toEqual([200, { ...ids, ...rejected }]);
    expect(await teal.post(resume, { action: "reject" })).toMatchObject({ status: 200, json: first.json });
    const late = await teal.post(resume, { action: "approve" });
    expect(late).toMatchObject({ status: 409, json: { detail: expect.stringContaining("already rejected by ann") } });
    expect(teal.runs).toEqual([]);
    const agent = await teal.runtime.find(ids.task_id);
    expect(agent.state).toMatchObject({ status: "ready", openTurnId: null });
    const [decided] = await teal.runtime.requests({ rootAgentId: ids.task_id, status: "decided" });
    expect(decided?.decision).toMatchObject({ verdict: "rejected", by: "ann", reason: "not mine" });
    const next = await teal.post("", { ...text("go on"), task_id: ids.task_id });
    expect(next.json.status).toBe("Completed");
  });

  test("approve covers all open approvals of the request, and only the next pause is a new question", async () => {
    const teal = await tealServed({ script: [twoCalls, deletion, "done"] });
    const { ids, resume, paused } = await waiting(teal);
    expect(paused.json.content.tool_calls).toHaveLength(2);
    const second = await teal.post(resume, { action: "approve" });
    expect(second.json).toMatchObject({ ...ids, message: "Human intervention required." });
    expect(second.json.tool_calls).toHaveLength(1);
    expect(teal.runs).toHaveLength(2);
    const last = await teal.post(approvalOf(second), { action: "approve" });
    expect(last.json).toMatchObject({ ...ids, ...completed("done") });
    expect(teal.runs).toHaveLength(3);
  });

  test("a late approve, after the request has paused again, does not approve calls that it has not seen", async () => {
    const teal = await tealServed({ script: [deletion, deletion, "done"] });
    const { ids, resume, paused } = await waiting(teal);
    const first = approvalOf({ json: paused.json.content as TealJson });
    const second = await teal.post(first);
    expect(second.json).toMatchObject({ ...ids, message: "Human intervention required." });
    // The URL of the first pause returns its first answer, and the short one returns the newer URL.
    expect(await teal.post(first)).toMatchObject({ status: 200, json: second.json });
    const { approval_url } = second.json;
    const late = await teal.post(resume, { action: "approve" });
    expect(late).toMatchObject({ status: 409, json: { ...ids, approval_url, tool_calls: second.json.tool_calls } });
    expect(late.json.detail).toContain("has paused again");
    expect(teal.runs).toHaveLength(1);
    expect(await teal.post(approvalOf(second))).toMatchObject({ status: 200, json: { output: "done" } });
    expect(teal.runs).toHaveLength(2);
  });

  test("a call of a pause approved on another surface does not block a short approve of the others", async () => {
    const teal = await tealServed({ script: [twoCalls, "done"] });
    const { resume, paused } = await waiting(teal);
    const [call] = paused.json.content.tool_calls;
    await teal.ask(`/test/decide?id=${encodeURIComponent(call?.id ?? "")}&action=approve`);
    expect(await teal.post(resume, { action: "approve" })).toMatchObject({ status: 200, json: { output: "done" } });
    expect(teal.runs).toHaveLength(2);
  });

  test("a rejection covers everything that the request waits for, also after another pause", async () => {
    const teal = await tealServed({ script: [deletion, deletion, "done"] });
    const { resume, paused } = await waiting(teal);
    await teal.post(approvalOf({ json: paused.json.content as TealJson }));
    expect(await teal.post(resume, { action: "reject" })).toMatchObject({ status: 200, json: rejected });
    expect(teal.runs).toHaveLength(1);
  });

  test("unknown calls in the URL approve nothing", async () => {
    const teal = await tealServed({ script: [deletion, "done"] });
    const { resume, ids } = await waiting(teal);
    const answer = await teal.post(`${resume}?calls=${ids.task_id}.9:1:0:1`, { action: "approve" });
    expect(answer.status).toBe(409);
    expect(teal.runs).toEqual([]);
  });

  test("a caller whom mayDecide forbids a decision is answered 403, and the request still waits", async () => {
    const runtime = { mayDecide: ({ verdict }: DecisionAttempt) => verdict === "rejected" };
    const teal = await tealServed({ script: [deletion], runtime });
    const { resume } = await waiting(teal);
    const refused = await teal.post(resume, { action: "approve" });
    expect([refused.status, refused.json.detail]).toEqual([403, expect.stringContaining("ann may not decide")]);
    expect(teal.runs).toEqual([]);
    expect(await teal.post(resume, { action: "reject" })).toMatchObject({ status: 200, json: rejected });
  });

  test("the action may be in the query, at the full path and at the short one", async () => {
    for (const path of [address, ""]) {
      const teal = await tealServed({ script: [deletion, "gone"] });
      const { ids, resume } = await waiting(teal);
      const response = await teal.ask(`${path}${resume}?action=approve`, { method: "POST" });
      expect([response.status, await response.json()]).toEqual([
        200,
        expect.objectContaining({ ...ids, output: "gone" }),
      ]);
    }
  });

  test("GET never decides, other actions and contradictions are 422, an unknown request is 404", async () => {
    const teal = await tealServed({ script: [deletion] });
    const { resume } = await waiting(teal);
    const got = await teal.ask(`${address}${resume}?action=approve`);
    expect([got.status, got.headers.get("allow")]).toEqual([405, "POST"]);
    const refused: [string, unknown, object][] = [
      [resume, { action: "Approve" }, { type: "value_error", loc: ["body", "action"] }],
      [`${resume}?action=maybe`, undefined, { type: "value_error", loc: ["query", "action"] }],
      [`${resume}?action=approve`, { action: "reject" }, { type: "value_error", loc: ["query", "action"] }],
      [resume, {}, { type: "missing", loc: ["body", "action"] }],
      [resume, undefined, { type: "missing", loc: ["body", "action"] }],
      [resume, { action: "answer" }, { type: "missing", loc: ["body", "result"] }],
      [resume, { action: "approve", tool_call_id: "none" }, { type: "value_error", loc: ["body", "tool_call_id"] }],
    ];
    for (const [path, body, detail] of refused) {
      const answer = await teal.post(path, body);
      expect([path, body, answer.status, answer.json]).toEqual([
        path,
        body,
        422,
        { detail: [expect.objectContaining(detail)] },
      ]);
    }
    const ids = ["33333333-3333-4333-8333-333300000001", "33333333-3333-4333-8333-333300000000", "7"];
    for (const id of [...ids, resume.slice(-36, -1).concat("2")]) {
      const answer = await teal.post(`/tealagents/v1alpha1/resume/${id}`, { action: "approve" });
      expect([id, answer.status, answer.json]).toEqual([id, 404, { detail: "Not Found" }]);
    }
    expect(teal.runs).toEqual([]);
  });

  test("a request that waits for nothing cannot be resumed", async () => {
    const teal = await tealServed({ script: "ok" });
    const { json } = await teal.post("", text("a"));
    const { task_id, session_id, request_id } = json;
    const answer = await teal.post(`/tealagents/v1alpha1/resume/${request_id}`, { action: "approve" });
    const detail = `The request is not waiting for a decision: ${request_id}`;
    expect([answer.status, answer.json]).toEqual([409, { detail, session_id, task_id, request_id }]);
  });

  test("the person may change the arguments, and names the call if there are several", async () => {
    const teal = await tealServed({ script: [twoCalls, "gone"] });
    const { ids, resume, paused } = await waiting(teal);
    const unclear = await teal.post(resume, { action: "approve", arguments: { id: 8 } });
    const calls = paused.json.content.tool_calls as { id: string }[];
    expect(unclear).toMatchObject({ status: 422, json: { detail: [{ loc: ["body", "tool_call_id"] }] } });
    expect(JSON.stringify(unclear.json)).toContain(calls[1]?.id);
    const edit = { action: "approve", arguments: { id: 8 }, tool_call_id: calls[1]?.id };
    const answer = await teal.post(resume, edit);
    expect(answer.json).toMatchObject({ ...ids, ...completed("gone") });
    expect(teal.runs).toEqual(expect.arrayContaining([{ id: 7 }, { id: 8 }]));
    expect(teal.runs).toHaveLength(2);
  });

  test("invalid arguments are refused, and the request still waits", async () => {
    const teal = await tealServed({ script: [deletion, "gone"] });
    const { resume } = await waiting(teal);
    const wrong = await teal.post(resume, { action: "approve", arguments: { id: "seven" } });
    expect(wrong).toMatchObject({ status: 422, json: { detail: [{ loc: ["body"] }] } });
    expect(await teal.post(resume, { action: "approve" })).toMatchObject({ status: 200, json: { output: "gone" } });
  });

  test("a question is shown as a call, and answered", async () => {
    const teal = await tealServed({ script: [question, "the first it is"] });
    const { ids, resume, paused } = await waiting(teal);
    expect(paused.json.content.tool_calls).toMatchObject([
      {
        name: "ask_user",
        function_name: "ask_user",
        plugin_name: null,
        metadata: { kind: "question", prompt: "Which one?" },
      },
    ]);
    const approval = await teal.post(resume, { action: "approve" });
    expect(approval).toMatchObject({ status: 409, json: { detail: expect.stringContaining("(question)") } });
    const answer = await teal.post(resume, { action: "answer", result: "the first" });
    expect(answer.json).toMatchObject({ ...ids, ...completed("the first it is") });
    expect(await teal.post(resume, { action: "answer", result: "the first" })).toMatchObject({ status: 200 });
    expect(await teal.post(resume, { action: "answer", result: "another" })).toMatchObject({ status: 409 });
  });

  test("a plain message to the task answers its question or rejects its approvals, and never approves", async () => {
    const asking = await tealServed({ script: [question, "thanks"] });
    const asked = await waiting(asking);
    const answered = await asking.post("", { ...text("the first"), task_id: asked.ids.task_id });
    expect(answered.json).toMatchObject({ ...asked.ids, status: "Completed", content: { output: "thanks" } });

    const deleting = await tealServed({ script: [deletion, "I will not"] });
    const paused = await waiting(deleting);
    const refused = await deleting.post("", { ...text("approve"), task_id: paused.ids.task_id });
    expect(refused.json).toMatchObject({ ...paused.ids, status: "Completed", content: { output: "I will not" } });
    expect(deleting.runs).toEqual([]);
  });

  test("a message that is repeated with its key does not reject later approvals", async () => {
    const teal = await tealServed({ script: ["hello", deletion, "gone"] });
    const { task_id } = (await teal.post("", text("a"))).json;
    const repeat = () => teal.post("", { ...text("delete"), task_id }, { headers: { "idempotency-key": "k" } });
    const first = await repeat();
    const second = await repeat();
    expect(second.json).toEqual(first.json);
    expect(second.json.status).toBe("Paused");
    const resume = `/tealagents/v1alpha1/resume/${first.json.request_id}`;
    expect(await teal.post(resume, { action: "approve" })).toMatchObject({ status: 200, json: { output: "gone" } });
    expect((await repeat()).json).toMatchObject({ request_id: first.json.request_id, status: "Completed" });
  });

  test("an answer that is repeated with its key gets the same response, also after the end of the request", async () => {
    const teal = await tealServed({ script: [question, "thanks"] });
    const { ids } = await waiting(teal);
    const say = (words: string) =>
      teal.post("", { ...text(words), task_id: ids.task_id }, { headers: { "idempotency-key": "k" } });
    const first = await say("the first");
    const second = await say("the first");
    expect(second.json).toEqual(first.json);
    expect(first.json).toMatchObject({ ...ids, status: "Completed", content: { output: "thanks" } });
    expect([first, second].map((one) => one.headers.get("idempotency-replayed"))).toEqual([null, "true"]);
    expect((await say("the second")).status).toBe(422);
    expect(await teal.runtime.turns()).toHaveLength(1);
  });

  test("a subagent's approval pauses the request of its root, which decides it", async () => {
    const ran: string[] = [];
    const wipe = defineTool({
      name: "wipe",
      description: "Wipes",
      parameters: z.object({}),
      needsApproval: true,
      execute: () => void ran.push("wipe"),
    });
    const model = scriptedModel([{ toolCalls: [{ name: "wipe" }] }, "wiped"]);
    const helper = defineAgent({ name: "helper", model, tools: [wipe] });
    const script = [{ toolCalls: [{ name: "helper", arguments: { input: "wipe" } }] }, "all clean"];
    const tools = [subagent(helper, { description: "Helps" })];
    const teal = await tealServed({ script, agent: { tools } });
    const { ids, resume, paused } = await waiting(teal);
    expect(paused.json.content.tool_calls).toMatchObject([{ name: "wipe", plugin_name: null }]);
    const answer = await teal.post(resume, { action: "approve" });
    expect(answer.json).toMatchObject({ ...ids, output: "all clean" });
    expect(await teal.post(resume, { action: "approve" })).toMatchObject({ status: 200, json: answer.json });
    expect(ran).toEqual(["wipe"]);
  });

  test("T5, T7: of 20 concurrent decisions over two surfaces one wins, the tool runs at most once, all get its verdict", async () => {
    for (let round = 0; round < 5; round += 1) {
      const teal = await tealServed({ script: [twoCalls, "gone", "gone"] });
      const { resume, paused, ids } = await waiting(teal);
      const [call] = paused.json.content.tool_calls as { id: string }[];
      const verdicts = Array.from({ length: 20 }, (_, index) => ((index + round) % 2 === 0 ? "approve" : "reject"));
      const answers = await Promise.all(
        verdicts.map(async (action, index) => {
          if (index % 4 < 2) return { action, ...(await teal.post(resume, { action })) };
          const response = await teal.ask(`/test/decide?id=${encodeURIComponent(call?.id ?? "")}&action=${action}`);
          return { action, status: response.status, json: (await response.json()) as TealJson };
        }),
      );
      const winners = new Set(answers.filter(({ status }) => status === 200).map(({ action }) => action));
      expect(winners.size).toBe(1);
      const [winner] = winners;
      const word = winner === "approve" ? "approved" : "rejected";
      for (const { action, status, json } of answers) {
        if (action === winner) continue;
        expect([status, JSON.stringify(json)]).toEqual([409, expect.stringContaining(`${word} by ann`)]);
      }
      expect(teal.runs).toHaveLength(winner === "approve" ? 2 : 0);
      const agent = await teal.runtime.find(ids.task_id);
      expect(agent.state.openTurnId).toBeNull();
    }
  });
});
