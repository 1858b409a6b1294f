// Records calls into a file: the path, a name, and their number.
import { recordedModel, scriptedModel } from "../../src/testing/index.ts";

const [file = "", name = "", count = "0"] = process.argv.slice(2);
for (let at = 0; at < Number(count); at += 1) {
  const text = `${name}${at}`;
  const model = recordedModel(scriptedModel(text), { file });
  const message = { id: "m", role: "user", createdAt: 0, origin: "user", content: text } as const;
  await model.generate({ messages: [message] }, { signal: new AbortController().signal });
}
