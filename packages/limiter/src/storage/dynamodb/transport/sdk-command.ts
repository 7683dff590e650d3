/** Types of the requests of an AWS SDK, derived from the commands that a module names. */

/** `GetItem` for `GetItemCommand`. */
export type OperationIn<Module> = keyof Module extends infer Name
  ? Name extends `${infer Operation}Command`
    ? Operation
    : never
  : never;

type CommandIn<Module, Operation extends string> =
  Module extends Record<`${Operation}Command`, new (input: never) => infer Command>
    ? Command
    : never;

export type InputIn<Module, Operation extends string> =
  CommandIn<Module, Operation> extends { input: infer Given extends object } ? Given : never;

export type OutputIn<Module, Operation extends string> =
  CommandIn<Module, Operation> extends {
    resolveMiddleware(
      ...parts: never[]
    ): (request: never) => Promise<{ output: infer Answer extends object }>;
  }
    ? Answer
    : never;
