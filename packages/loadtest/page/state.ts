/** The state of the run on the page, and the requests that change it. */

import { signal } from "@preact/signals";
import { addressOf, post } from "@zae-limiter/dashboard/page/api.ts";
import type { UiState } from "../src/ui/ui-wire.ts";

export const run = signal<UiState | undefined>(undefined);
export const connected = signal(false);
export const problem = signal<string | undefined>(undefined);

export interface Load {
  readonly users: number;
  readonly rate: number | null;
}

/** Listens to the command; the browser connects again by itself when the connection is lost. */
export function connect(): void {
  const source = new EventSource(addressOf("events"));
  source.addEventListener("open", () => {
    connected.value = true;
  });
  source.addEventListener("error", () => {
    connected.value = false;
  });
  source.addEventListener("state", ({ data }: MessageEvent<string>) => {
    run.value = JSON.parse(data) as UiState;
  });
}

/** Starts, changes or stops the run; what is refused is shown. */
export async function act(what: "start" | "change" | "stop", load?: Load): Promise<void> {
  try {
    run.value = await post<UiState>(what, load ?? {});
    problem.value = undefined;
  } catch (error) {
    problem.value = (error as Error).message;
  }
}
