/** Edits the limits of one place: checked as one types, with the effect shown before it is saved. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { EffectJson, KindChangeJson, PlaceJson, PreviewJson } from "../src/wire.ts";
import { post } from "./api.ts";
import { time, whole, wholeAmount } from "./format.ts";
import { limitsIn } from "./limit-words.ts";
import { Differences, EntityLink, Limits, Note, SureButton } from "./parts.tsx";

export interface EditorProps {
  readonly place: PlaceJson;
  readonly stored: readonly string[];
  /** Limits to begin with; else those that are stored. */
  readonly suggested?: readonly string[];
  readonly done: () => void;
}

interface Checked {
  readonly text: string;
  readonly preview?: PreviewJson;
  readonly error?: string;
}

export function LimitEditor({ place, stored, suggested, done }: EditorProps) {
  const [text, setText] = useState((suggested ?? stored).join("  "));
  const [checked, setChecked] = useState<Checked>();
  const [failure, setFailure] = useState<string>();
  const [saving, setSaving] = useState(false);
  const [replaceKind, setReplaceKind] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const limits = limitsIn(text);
  // Only the text changes while editing.
  useEffect(() => {
    const controller = new AbortController();
    const waiting = setTimeout(() => {
      const body = { ...place, limits, expected: stored };
      post<PreviewJson>("preview", body, controller.signal).then(
        (preview) => setChecked({ text, preview }),
        (error: Error) => {
          if (!controller.signal.aborted) setChecked({ text, error: error.message });
        },
      );
    }, 250);
    return () => {
      clearTimeout(waiting);
      controller.abort();
    };
  }, [text]);
  const current = checked?.text === text ? checked : undefined;
  const save = async (wanted: readonly string[]) => {
    setSaving(true);
    setFailure(undefined);
    try {
      await post("limits", { ...place, limits: wanted, expected: stored, replaceKind });
      done();
    } catch (error) {
      setFailure((error as Error).message);
      setSaving(false);
    }
  };
  const kinds = current?.preview?.kinds ?? [];
  const isAllowed = kinds.length === 0 || replaceKind;
  const canSave = !saving && isAllowed && limits.length > 0 && current?.preview !== undefined;
  return (
    <form
      class="editor"
      onSubmit={(event) => {
        event.preventDefault();
        if (canSave) void save(limits);
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") done();
      }}
    >
      <label>
        <span class="field-label">
          Limits, as <code>name:amount/period:burst</code>
        </span>
        <input
          ref={input}
          class="mono"
          spellcheck={false}
          autocomplete="off"
          value={text}
          placeholder="rpm:100  tpm:10000/min:15000"
          aria-invalid={current?.error !== undefined}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </label>
      <div class="preview" aria-live="polite">
        {current === undefined && <p class="faint">Checking…</p>}
        {current?.error !== undefined && <Note kind="bad">{current.error}</Note>}
        {current?.preview !== undefined && <Preview preview={current.preview} />}
      </div>
      {kinds.length > 0 && <KindBox kinds={kinds} checked={replaceKind} change={setReplaceKind} />}
      {failure !== undefined && <Note kind="bad">{failure}</Note>}
      <div class="buttons">
        <button type="submit" class="primary" disabled={!canSave}>
          {saving ? "Saving…" : "Save"}
        </button>
        <button type="button" class="quiet" onClick={done}>
          Cancel
        </button>
        {stored.length > 0 && (
          <SureButton
            label="Remove"
            question="The next level applies then."
            act={() => void save([])}
          />
        )}
      </div>
    </form>
  );
}

/** Returns a kind of limits in words: `a quota`, `slots`. */
function kindText(kind: string): string {
  return kind === "concurrency" ? "slots" : `a ${kind}`;
}

function KindBox(props: {
  kinds: readonly KindChangeJson[];
  checked: boolean;
  change: (checked: boolean) => void;
}) {
  const changes = props.kinds.map(
    ({ limitName, before, after }) => `${limitName}, ${kindText(before)}, by ${kindText(after)}`,
  );
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={props.checked}
        onChange={({ currentTarget }) => props.change(currentTarget.checked)}
      />{" "}
      Replace {changes.join("; ")}
    </label>
  );
}

function Preview({ preview }: { preview: PreviewJson }) {
  const { warnings, differences, affectedCount, exceededCount, effects } = preview;
  const { complete, snapshots } = preview;
  const removed = differences.filter(({ after }) => after === null);
  const few = effects.slice(0, 8);
  return (
    <>
      <Differences differences={differences} />
      {warnings.map((warning) => (
        <Note key={warning} kind="warn">
          {warning}
        </Note>
      ))}
      {removed.length > 0 && (
        <Note kind="warn">
          Acquires that name {removed.map(({ limitName }) => limitName).join(", ")} fail with an
          error where no other level has that limit.
        </Note>
      )}
      <p class="effect">
        <b>
          {complete ? "" : "at least "}
          {whole(affectedCount)} {affectedCount === 1 ? "bucket changes" : "buckets change"}
        </b>
        {exceededCount > 0 && (
          <span class="bad-text">
            , {whole(exceededCount)} of them used more in an hour of the last day than the new limit
            allows
          </span>
        )}
      </p>
      {few.length > 0 && <Effects effects={few} />}
      {effects.length > few.length && (
        <p class="more">and {whole(affectedCount - few.length)} more</p>
      )}
      <p class="faint small">
        An estimate from {whole(snapshots)} hourly usage snapshots: it knows the entities that have
        a bucket or consumed something in the last day.
      </p>
    </>
  );
}

function Effects({ effects }: { effects: readonly EffectJson[] }) {
  return (
    <div class="scroll">
      <table class="effects">
        <thead>
          <tr>
            <th scope="col">Entity</th>
            <th scope="col">Resource</th>
            <th scope="col">From</th>
            <th scope="col">To</th>
            <th scope="col">Busiest hour</th>
          </tr>
        </thead>
        <tbody>
          {effects.map((effect) => (
            <tr key={`${effect.entityId} ${effect.resource}`}>
              <td>
                <EntityLink id={effect.entityId} />
              </td>
              <td class="mono">{effect.resource}</td>
              <td data-label="From">
                <Limits limits={effect.before} />
              </td>
              <td data-label="To">
                <Limits limits={effect.after} />
              </td>
              <td data-label={effect.exceeded.length > 0 ? "Busiest hour" : undefined}>
                {effect.exceeded.map(({ limitName, used, allowed, hour }) => (
                  <span key={limitName} class="bad-text" title={time(hour)}>
                    {limitName}: {wholeAmount(limitName, used)} of {wholeAmount(
                      limitName,
                      allowed,
                    )}{" "}
                  </span>
                ))}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
