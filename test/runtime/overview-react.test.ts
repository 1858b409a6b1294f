import { useAtom, useSelector } from "@xstate/store-react";
import { parseHTML } from "linkedom";
import { act, createElement, type ReactNode } from "react";
import { expect, it, vi } from "vitest";
import { type AgentOverview, createRuntime, defineAgent, type Overview } from "../../src/index.ts";
import type { OverviewPart } from "../../src/runtime/projections/overview.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const desk = defineAgent({ name: "clerk", model: scriptedModel("Noted.") });

function Status({ overview }: { readonly overview: Overview }): ReactNode {
  const status = useSelector(overview, ({ context }) => context.agents["desk"]?.status ?? "unknown");
  return createElement("p", null, status);
}

function Answer({ part }: { readonly part: OverviewPart<AgentOverview | undefined> }): ReactNode {
  const agent: AgentOverview | undefined = useSelector(part);
  return createElement("q", null, agent?.text);
}

function Turns({ part }: { readonly part: OverviewPart<number> }): ReactNode {
  const turns: number = useAtom(part);
  return createElement("b", null, turns);
}

it("components of @xstate/store-react show the overview and follow it", async () => {
  const { document, window } = parseHTML("<html><body><main></main></body></html>");
  vi.stubGlobal("window", window);
  vi.stubGlobal("document", document);
  vi.stubGlobal("IS_REACT_ACT_ENVIRONMENT", true);
  const { createRoot } = await import("react-dom/client");
  const runtime = await createRuntime({ agents: [desk] });
  const { overview } = runtime;
  const container = document.querySelector("main") ?? document.body;
  const root = createRoot(container);
  const parts = [
    createElement(Status, { overview, key: 1 }),
    createElement(Answer, { part: overview.agent("desk"), key: 2 }),
    createElement(Turns, { part: overview.select(({ agents }) => agents["desk"]?.turns ?? 0), key: 3 }),
  ];
  await act(async () => root.render(parts));
  expect(container.innerHTML).toBe("<p>unknown</p><q></q><b>0</b>");
  await act(async () => {
    const agent = await runtime.agent("clerk", { agentId: "desk" });
    await agent.start();
    await agent.executeTurn("Parcel A weighs 3 kg.").result;
    await vi.waitFor(() => expect(container.innerHTML).toBe("<p>ready</p><q>Noted.</q><b>1</b>"));
  });
  await act(async () => root.unmount());
  await runtime.shutdown();
  vi.unstubAllGlobals();
});
