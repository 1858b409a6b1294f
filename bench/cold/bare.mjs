// What somebody without a runtime starts: the client, one question, the answer.
import OpenAI from "openai";

const [baseURL] = process.argv.slice(2);
const client = new OpenAI({ apiKey: "none", baseURL });
const completion = await client.chat.completions.create({
  model: "one",
  messages: [{ role: "user", content: "Please do the work and tell me when it is done." }],
});
process.stdout.write(
  `${JSON.stringify({ text: completion.choices[0].message.content, processor: process.cpuUsage() })}\n`,
);
process.exit(0);
