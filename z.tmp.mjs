import { z } from "zod";
import { openApiDocument } from "./src/server/openapi.ts";
import { docsPage } from "./src/server/docs-page.ts";
import { namedSchemas } from "./src/server/api/named-schemas.ts";
import { agentSchema, definitionSchema, artifactInfoSchema, accountJsonSchema } from "./src/server/api/agent-json.ts";
import { newTurnSchema, turnSchema, turnSummarySchema, acceptedTurnSchema } from "./src/server/api/turn-json.ts";
import { requestSchema, decisionBodySchema } from "./src/server/api/request-json.ts";
import { agentStateJsonSchema, jsonSchema, messageSchema, traceEntrySchema, troupeEventSchema } from "./src/state/index.ts";
import { writeFileSync } from "node:fs";
const page = (s) => z.object({ items: z.array(s), next: z.string().nullable() });
const error = z.object({ error: z.object({ code: z.string() }) }).meta({ id: "Error" });
const r = (id, schema, body) => ({ id, method: "POST", path: "/api/" + id + "/{a}", access: "caller", summary: id, params: z.object({ a: z.string() }), body, responses: { 200: { description: "ok", schema } } });
const doc = openApiDocument({ title: "t", description: "d", version: "1", error, named: namedSchemas, anything: [jsonSchema], routes: [
 r("a", agentSchema), r("b", page(definitionSchema)), r("c", page(artifactInfoSchema)), r("d", page(accountJsonSchema)), r("e", turnSchema, newTurnSchema), r("f", page(turnSummarySchema)), r("g", acceptedTurnSchema), r("h", requestSchema, decisionBodySchema), r("i", agentStateJsonSchema), r("j", page(messageSchema)), r("k", page(traceEntrySchema)), { ...r("l"), responses: { 200: { description: "s", stream: troupeEventSchema } } } ] });
writeFileSync("/tmp/s2doc.json", JSON.stringify(doc, null, 1));
writeFileSync("/tmp/s2doc.html", docsPage(doc));
