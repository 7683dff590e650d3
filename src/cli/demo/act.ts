/** One part of the demonstration; each builds on what the ones before it have stored. */

import type { Repository } from "../../repository/repository.ts";
import type { Narrator } from "./narrator.ts";

/** What every act is given. */
export interface Scene {
  readonly repository: Repository;
  readonly narrator: Narrator;
  /** Lets time pass. It stands still otherwise, so that every run shows the same numbers. */
  readonly pass: (seconds: number) => void;
}

export type Act = (scene: Scene) => Promise<void>;
