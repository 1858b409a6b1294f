/** A server-sent event as a client reads it. */
export interface SseFrame {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: string;
}

/** The frames of a stream as they arrive, without comments. Throws when the connection breaks. */
export async function* sseFrames(response: Response): AsyncGenerator<SseFrame, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of response.body ?? []) {
    rest += decoder.decode(bytes as Uint8Array, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const field = (name: string): string | undefined =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const data = field("data");
      if (data !== undefined) yield { id: field("id"), event: field("event"), data };
    }
  }
}
