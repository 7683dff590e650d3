/** A DynamoDB engine on this machine, as the tests see it. */

export interface Engine {
  readonly name: "dynoxide" | "dynamodb-local";
  /** The address at which it answers; absent when it was skipped. */
  readonly endpoint?: string;
  /** Why it does not run here. */
  readonly skipped?: string;
}

/** An engine that answers. */
export type RunningEngine = Engine & { readonly endpoint: string };

declare module "vitest" {
  interface ProvidedContext {
    engines: Engine[];
  }
}
