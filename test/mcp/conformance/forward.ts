// The command that the conformance suite runs for each scenario: it leaves the work to the test, whose address is the first argument.
const [, , test = "", server = ""] = process.argv;
const { MCP_CONFORMANCE_SCENARIO: name = "", MCP_CONFORMANCE_CONTEXT: context = "{}" } = process.env;
const answer = await fetch(test, {
  method: "POST",
  body: JSON.stringify({ name, server, context: JSON.parse(context) }),
});
console.error(await answer.text());
if (!answer.ok) process.exitCode = 1;
