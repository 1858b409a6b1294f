import { openScripted, type ScriptedServer } from "./scripted-server.ts";

/** A server that repeats a secret in its definitions, in an error of the first call, in results and in resources. */
export async function openRepeating(secret: string): Promise<ScriptedServer> {
  const echo = `the key is ${secret}, Bearer ${secret}`;
  const schema = { type: "object", properties: { a: { type: "string", description: echo } } };
  return await openScripted({
    tools: [
      { name: "work", description: echo, inputSchema: schema, annotations: { title: echo } },
      { name: `work-${secret}`, description: "A name." },
    ],
    call: (number, _request, { result, error }) =>
      number === 1
        ? error(-32_602, echo)
        : result({
            content: [
              { type: "text", text: echo },
              { type: "resource", resource: { uri: `far://${secret}`, mimeType: "text/plain", text: echo } },
              { type: "resource_link", uri: `far://${secret}`, name: echo },
            ],
            structuredContent: { echo, deep: [{ echo }] },
          }),
    answers: {
      "resources/read": { contents: [{ uri: `far://${secret}`, text: echo }] },
      "resources/list": { resources: [{ uri: `far://${secret}`, name: echo, description: echo }] },
    },
  });
}
