// A chat page with CopilotKit: its chat speaks AG-UI with troupe, without a runtime of CopilotKit. Approvals are interrupts, and a page
// that is loaded again shows the stored messages and continues a running answer.
//
//     npm install @copilotkit/react-core react react-dom zod
//
// CopilotKit asks for a license (`publicLicenseKey`) where agents without its runtime are used in production.
import {
  CopilotChat,
  CopilotKitProvider,
  HttpAgent,
  useDefaultRenderTool,
  useInterrupt,
} from "@copilotkit/react-core/v2";
import "@copilotkit/react-core/v2/styles.css";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

/** CopilotKit connects when it opens a thread; an empty run shows what is stored and follows a running answer. */
class TroupeAgent extends HttpAgent {
  protected override connect(input: Parameters<HttpAgent["run"]>[0]): ReturnType<HttpAgent["run"]> {
    return this.run(input);
  }
}

const agents = { desk: new TroupeAgent({ url: `${location.origin}/ag-ui/desk` }) };

function CallsAndApprovals() {
  useDefaultRenderTool();
  useInterrupt({
    agentId: "desk",
    render: ({ interrupt, resolve, cancel }) => (
      <p>
        {interrupt?.message}{" "}
        <button type="button" onClick={() => resolve({ approved: true })}>
          Approve
        </button>
        <button type="button" onClick={() => cancel()}>
          Reject
        </button>
      </p>
    ),
  });
  return null;
}

const place = document.getElementById("desk");
if (place !== null) {
  createRoot(place).render(
    <StrictMode>
      <CopilotKitProvider selfManagedAgents={agents} enableInspector={false}>
        <CallsAndApprovals />
        <CopilotChat agentId="desk" threadId="page" />
      </CopilotKitProvider>
    </StrictMode>,
  );
}
