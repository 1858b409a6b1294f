import { render } from "preact";
import { App } from "./app.tsx";
import { feedOfFile } from "./feed-of-file.ts";
import { feedOfServer, takeToken } from "./feed-of-server.ts";
import { runInPage } from "./packed-run.ts";
import { startFailure, startPage } from "./page-state.ts";
import { startRouting } from "./route.ts";
import { startTheme } from "./settings.ts";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/tree.css";
import "./styles/views.css";
import "./styles/detail.css";
import "./styles/messages.css";
import "./styles/people.css";
import "./styles/compare.css";

async function start(): Promise<void> {
  const run = await runInPage();
  if (run) {
    startRouting();
    return startPage(feedOfFile(run));
  }
  const token = takeToken();
  startRouting();
  // The scope is known only after the first answer.
  const { scope } = await feedOfServer(token, false).info();
  return startPage(feedOfServer(token, scope === "act"));
}

startTheme();
render(<App />, document.getElementById("app") ?? document.body);
start().catch((error: unknown) => {
  startFailure.value = error instanceof Error ? error.message : String(error);
});
