/** Small parts that all views are made of. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { BalanceJson, DifferenceJson, LimitTextsJson, MarkJson } from "../src/wire.ts";
import { compactAmount, seconds, wholeAmount } from "./format.ts";
import { heldText } from "./limit-words.ts";
import { availableAfter, stateOf } from "./refill.ts";
import { hrefOf, secondsSince } from "./state.ts";
import { theme, toggleTheme } from "./theme.ts";

export function Card(props: {
  title: string;
  hint?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`card ${props.class ?? ""}`}>
      <header class="card-head">
        <h2>{props.title}</h2>
        {props.hint !== undefined && <p class="hint">{props.hint}</p>}
        {props.actions !== undefined && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </section>
  );
}

export function Note(props: { kind?: "bad" | "good" | "warn"; children: ComponentChildren }) {
  const role = props.kind === "bad" ? "alert" : "status";
  return (
    <p class={`note ${props.kind ?? ""}`} role={role}>
      {props.children}
    </p>
  );
}

export function Nothing(props: { children: ComponentChildren }) {
  return <p class="nothing">{props.children}</p>;
}

/** Draws a table of numbers, which scrolls in itself; each row begins with a header. */
export function Numbers(props: { columns: readonly string[]; children: ComponentChildren }) {
  return (
    <div class="scroll">
      <table class="numbers">
        <thead>
          <tr>
            {props.columns.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

type Words = LimitTextsJson["words"] | undefined;

export function Limits(props: { limits: readonly string[]; words?: Words }) {
  if (props.limits.length === 0) return <span class="faint">none</span>;
  return (
    <span class="chips">
      {props.limits.map((limit) => (
        <code key={limit} class="chip">
          {limit}
          {props.words?.[limit] !== undefined && <small class="faint"> {props.words[limit]}</small>}
        </code>
      ))}
    </span>
  );
}

export function EntityLink(props: { id: string }) {
  return (
    <a class="mono" href={hrefOf("entities", { id: props.id })}>
      {props.id}
    </a>
  );
}

const MARKS: Readonly<Record<MarkJson, readonly [label: string, title: string]>> = {
  soft: ["soft", "It refuses nothing: consumption is counted, into debt"],
  bypass: ["bypassed", "Everything is granted and counted"],
  disabled: ["switched off", "Every acquire is refused"],
};

/** Shows that a limit is not simply enforced. */
export function Mark({ mark, at }: { mark: MarkJson; at?: string | null }) {
  const [label, title] = MARKS[mark];
  return (
    <span class={`badge mark-${mark}`} title={title}>
      {label}
      {at != null && ` by ${at}`}
    </span>
  );
}

/** Shows how full a bucket is now: it refills on the page as it does in the store. */
export function BalanceBar(props: { balance: BalanceJson; atMs: number; label?: string }) {
  const { balance } = props;
  const { capacity, limitName } = balance;
  const passed = secondsSince(props.atMs);
  const available = availableAfter(balance, passed);
  const share = capacity === 0 ? 1 : Math.min(1, Math.max(0, available / capacity));
  const kind = stateOf(available, capacity);
  const label = props.label ?? limitName;
  return (
    <div class={`balance ${kind}`} title={returnText(balance, available, passed)}>
      <span class="balance-name">
        {label}
        {balance.mark !== undefined && <Mark mark={balance.mark} />}
      </span>
      {/* biome-ignore lint/a11y/useSemanticElements: browsers draw <meter> in their own way. */}
      <div
        class="bar"
        role="meter"
        aria-label={`${label} of ${balance.entityId}`}
        aria-valuemin={0}
        aria-valuemax={capacity}
        aria-valuenow={Math.min(capacity, Math.max(0, Math.floor(available)))}
        aria-valuetext={`${wholeAmount(limitName, Math.floor(available))} of ${wholeAmount(limitName, capacity)}`}
      >
        <div class="fill" style={{ width: `${share * 100}%` }} />
      </div>
      <span class="balance-numbers">
        <b>{compactAmount(limitName, Math.floor(available))}</b>{" "}
        <span>/ {compactAmount(limitName, capacity)}</span>
      </span>
      {(balance.resets !== undefined || balance.holders !== undefined) && (
        <small class="faint balance-resets">{returnText(balance, available, passed)}</small>
      )}
      {balance.empty !== undefined && available >= 1 && (
        <small class="balance-empty">{balance.empty}</small>
      )}
    </div>
  );
}

/** Returns when a bucket is full again: after its refill, or when it resets. */
function returnText(balance: BalanceJson, available: number, passed: number): string {
  const { capacity, refillPerSecond, resets, resetsInSeconds, holders } = balance;
  if (holders !== undefined) return heldText(holders);
  if (resets !== undefined) {
    const left = (resetsInSeconds ?? 0) - passed;
    return left > 0 ? `resets in ${seconds(left)}` : resets;
  }
  return available < capacity
    ? `full in ${seconds((capacity - available) / refillPerSecond)}`
    : "full";
}

export function Differences(props: { differences: readonly DifferenceJson[] }) {
  if (props.differences.length === 0) return <span class="faint">no change of limits</span>;
  return (
    <ul class="diff">
      {props.differences.map(({ limitName, before, after }) => (
        <li key={limitName}>
          {before !== null && <del>{before}</del>}
          {before !== null && after !== null && <span aria-hidden="true"> → </span>}
          {after !== null && <ins>{after}</ins>}
        </li>
      ))}
    </ul>
  );
}

/** Shows a button that asks before it acts. */
export function SureButton(props: { label: string; question: string; act: () => void }) {
  const [asking, setAsking] = useState(false);
  if (!asking) {
    return (
      <button type="button" class="quiet" onClick={() => setAsking(true)}>
        {props.label}
      </button>
    );
  }
  return (
    <span class="sure">
      <span>{props.question}</span>
      <button
        type="button"
        class="danger"
        onClick={() => {
          setAsking(false);
          props.act();
        }}
      >
        {props.label}
      </button>
      <button type="button" class="quiet" onClick={() => setAsking(false)}>
        Keep
      </button>
    </span>
  );
}

/** Shows whether the page receives changes, and a button for the other theme. */
export function LiveAndTheme(props: { connected: boolean }) {
  return (
    <>
      <span class={`live ${props.connected ? "on" : ""}`} role="status">
        {props.connected ? "live" : "offline"}
      </span>
      <button
        type="button"
        class="icon"
        aria-label={theme.value === "dark" ? "Light theme" : "Dark theme"}
        onClick={toggleTheme}
      >
        <span aria-hidden="true">{theme.value === "dark" ? "☀" : "☾"}</span>
      </button>
    </>
  );
}
