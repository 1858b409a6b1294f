/*
 * Servers have no common code for a prompt that is too long: most answer 400 with their own text. An agent that does not recognise it
 * fails in every later turn, since each sends the same prompt and more.
 */

/** A refusal in the server's words. */
interface Refusal {
  readonly status: number | undefined;
  /** Code and type. */
  readonly named: string;
  readonly message: string;
}

const codes = new Set(["1261", "model_max_prompt_tokens_exceeded", "tokens_limit_reached", "request_too_large"]);
/** `context_length_exceeded`, `exceed_context_size_error`, `context_window_exceeded`, … */
const codeWords = /context_(?:length|size|window)/i;

/** Texts of the servers' refusals. Numbers and model names occur between the words. */
const texts: readonly RegExp[] = [
  // OpenAI, Azure, DeepSeek, OpenRouter, vLLM, SGLang, Cerebras
  /maximum context length/i,
  /context[ _-]?(?:length|window|limit|size)/i,
  /tokens exceed the configured limit/i,
  /reduce (?:the length of the|your) (?:messages|prompt|input)/i,
  // vLLM
  /longer than the maximum model length/i,
  /max_(?:completion_)?tokens must be at least 1, got -/i,
  // Anthropic, Fireworks, Bedrock, Ollama, LM Studio
  /(?:prompt|input|request|conversation|messages?)(?: \([^)]{0,100}\))?(?: text)? (?:is|are) too (?:long|large)/i,
  /prompt too long/i,
  /too many (?:input |prompt )?tokens/i,
  /exceeds the maximum (?:allowed )?(?:size|number of tokens|input length)/i,
  // Gemini and Vertex
  /input token count\b.{0,60}(?:exceeds|only supports)/i,
  // xAI
  /maximum prompt length/i,
  // Mistral
  /too large for model with \d+/i,
  // Kimi
  /exceeded model token limit/i,
  /total message size \d+ exceeds (?:the )?limit/i,
  // GitHub Copilot and GitHub Models
  /prompt token count.{0,40}exceeds/i,
  /request body too large for .{0,80} model/i,
  // Zhipu
  /prompt exceeds (?:the )?max/i,
  // DashScope
  /range of input length should be/i,
  // TGI and Together
  /`?inputs`?(?: tokens)? (?:\+ `?max_new_tokens`? must be <=|must have less than)/i,
  // watsonx, SiliconFlow, Volcengine, Cohere
  /number of input tokens \d+ cannot exceed/i,
  /prompt_tokens \(\d+\) must be less than/i,
  /exceeds? (?:the )?max(?:imum)? (?:message|input|prompt) tokens/i,
  /tokens in (?:the )?(?:prompt|request) (?:more than|exceeds?|cannot exceed)/i,
  // Baidu, Tencent, SambaNova and several gateways
  /input (?:token )?length\b.{0,40}(?:too long|exceeds?)/i,
  /exceeds? (?:the )?(?:model(?:'s)? (?:token )?limit|max[_ ]seq[_ ]len)/i,
  /length is \d+ while limit is \d+/i,
  /(?<!(?:daily|weekly|monthly|hourly|per user) )token limit exceeded/i,
];

/** `max_tokens` is higher than the model allows; such a message may also mention the context length. */
const bounds = /maximum value for `?max_(?:completion_)?tokens/i;

/** Rate limits: waiting helps, a shorter prompt does not. */
const rates =
  /rate[ _-]?limit|tokens? per (?:min|hour|day)|\bTP[MD]\b|too many requests|throttl|please wait|try again (?:in|later)|concurren/i;

/** Refusals of a key, an account or a model; their messages may also match the texts above. */
const otherStatuses: ReadonlySet<number | undefined> = new Set([401, 402, 403, 404, 429]);

/** Whether a server refused a prompt because it is too long. `own`: additional texts or patterns of such refusals. */
export function isContextOverflow(refusal: Refusal, own: readonly (string | RegExp)[]): boolean {
  const { status, named, message } = refusal;
  if (own.some((text) => (typeof text === "string" ? message.includes(text) : message.search(text) >= 0))) return true;
  if (codeWords.test(named)) return true;
  if (otherStatuses.has(status) || rates.test(named) || rates.test(message) || bounds.test(message)) return false;
  // Cerebras sends no body, and proxies send an HTML page; 413 always means the size of the request.
  if (status === 413) return true;
  return named.split(" ").some((name) => codes.has(name)) || texts.some((text) => text.test(message));
}
