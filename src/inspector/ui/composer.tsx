import { useRef, useState } from "preact/hooks";
import { wordsOf } from "./feed-client.ts";
import { Icon } from "./icons.tsx";
import { plainText } from "./untrusted.tsx";

interface ComposerProps {
  readonly label: string;
  /** `key` names this turn: the same text sent twice is one turn. */
  readonly send: (turn: {
    readonly key: string;
    readonly text: string;
    readonly images: readonly string[];
  }) => Promise<void>;
}

const MOST_IMAGES = 8;
const MOST_IMAGE_BYTES = 4_000_000;

/** Where one writes to an agent. Images come by drop or paste. */
export function Composer({ label, send }: ComposerProps) {
  const [text, setText] = useState("");
  const [images, setImages] = useState<readonly string[]>([]);
  const [failure, setFailure] = useState<string | null>(null);
  const [isSending, setSending] = useState(false);
  const key = useRef<string>(crypto.randomUUID());
  const isEmpty = text.trim() === "" && images.length === 0;
  const submit = async (): Promise<void> => {
    if (isEmpty || isSending) return;
    setSending(true);
    setFailure(null);
    try {
      await send({ key: key.current, text, images });
      key.current = crypto.randomUUID();
      setText("");
      setImages([]);
    } catch (error) {
      setFailure(wordsOf(error));
    }
    setSending(false);
  };
  const take = (files: Iterable<File>): void => {
    for (const file of files) {
      if (!/^image\/(?:png|jpeg|gif|webp)$/.test(file.type) || file.size > MOST_IMAGE_BYTES) {
        setFailure("Images are PNG, JPEG, GIF or WebP of at most 4 MB.");
        continue;
      }
      const reader = new FileReader();
      reader.addEventListener("load", () => {
        const { result } = reader;
        if (typeof result === "string") setImages((known) => [...known, result].slice(0, MOST_IMAGES));
      });
      reader.readAsDataURL(file);
    }
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        take(event.dataTransfer?.files ?? []);
      }}
    >
      {images.length > 0 && (
        <ul class="composer-images">
          {images.map((image, index) => (
            <li key={image.slice(-40)}>
              <img src={image} alt={`Image ${index + 1}`} />
              <button
                type="button"
                class="plain"
                aria-label={`Remove image ${index + 1}`}
                onClick={() => setImages(images.filter((one) => one !== image))}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <textarea
        rows={3}
        placeholder={label}
        aria-label={label}
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onPaste={(event) => take(event.clipboardData?.files ?? [])}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void submit();
        }}
      />
      <p class="choices">
        <span class="quiet">Ctrl Enter sends; images by drop or paste</span>
        <span class="spacer" />
        <button class="primary" disabled={isEmpty || isSending}>
          {isSending ? "Sending …" : "Send"}
        </button>
      </p>
      {failure !== null && (
        <p class="note bad" role="alert">
          {plainText(failure)}
        </p>
      )}
    </form>
  );
}
