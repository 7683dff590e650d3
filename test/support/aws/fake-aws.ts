/**
 * AWS as far as deploying asks for it, in this process: stacks that take their time, fail where a
 * test says so, are changed by several at once, and are described late. Change sets for a new stack
 * share one shell, and carrying one out voids the others. moto, which `test/aws` uses, knows
 * nothing of that. It has the interface of the real client, so everything above the SDK is
 * tested.
 */

import type { Aws } from "@zae-limiter/aws/client/aws.ts";
import type { ActionName, Input, Output } from "@zae-limiter/aws/client/aws-actions.ts";
import { AwsRefusal } from "@zae-limiter/aws/client/aws-failure.ts";
import { compactTemplate, stackTemplate } from "@zae-limiter/aws/template/template.ts";

export interface FakeEvent {
  readonly resource: string;
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly physicalId?: string;
}

export interface FakeStack {
  id: string;
  name: string;
  status: string;
  parameters: Record<string, string>;
  tags: Record<string, string>;
  outputs?: Record<string, string>;
  createdAt?: Date;
}

type Answers = {
  [Name in ActionName]?: (
    input: Input<Name>,
  ) => Partial<Output<Name>> | Promise<Partial<Output<Name>>>;
};

/** Course of a change set or a deletion: the events, and the end. */
export interface Script {
  readonly events: readonly FakeEvent[];
  readonly end: string;
}

/** How long a stack is described by an old status after a change has begun, and by which. */
export interface Staleness {
  looks: number;
  readonly as: "before" | "missing";
}

interface FakeChangeSet {
  readonly id: string;
  readonly name: string;
  readonly stack: FakeStack;
  readonly wanted: {
    readonly ChangeSetType: string;
    readonly Parameters: readonly { ParameterKey: string; ParameterValue?: string }[];
    readonly Tags: readonly { Key: string; Value: string }[];
  };
}

interface Request {
  readonly action: ActionName;
  readonly input: Record<string, unknown>;
}

const STACK_TYPE = "AWS::CloudFormation::Stack";
export const TABLE_EVENT = { resource: "LimiterTable", type: "AWS::DynamoDB::Table" } as const;
const SUCCESS: Record<string, string> = { CREATE: "CREATE_COMPLETE", UPDATE: "UPDATE_COMPLETE" };

export function refusal(code: string, message: string): AwsRefusal {
  return new AwsRefusal("test", { name: code, message }, new Error(message));
}

export class FakeAws implements Aws {
  readonly requests: Request[] = [];
  readonly stacks: FakeStack[] = [];
  /** Changes of the next change set; `undefined`: none. */
  changes: readonly Record<string, unknown>[] | undefined = [];
  script: Script | undefined;
  deletion: Script = { events: [], end: "DELETE_COMPLETE" };
  template = compactTemplate(stackTemplate());
  stale: Staleness | undefined;
  /** Whether descriptions of stacks are empty, as on some emulators. */
  isSilent = false;
  /** Answers of a test, before those below. */
  answers: Answers = {};
  #events = new Map<string, { id: string; event: FakeEvent }[]>();
  #pending: { stack: FakeStack; script: Script; step: number } | undefined;
  #changeSets: FakeChangeSet[] = [];
  /** As it was before what was begun last. */
  #before: FakeStack | undefined;
  #count = 0;

  readonly unstoppable = this;

  async send<Name extends ActionName>(action: Name, input: Input<Name>): Promise<Output<Name>> {
    this.requests.push({ action, input: input as Record<string, unknown> });
    const own = this.answers[action];
    if (own !== undefined) return (await own(input)) as Output<Name>;
    return this.#answer(action, input as Record<string, string>) as Output<Name>;
  }

  async region(): Promise<string> {
    return "us-east-1";
  }

  close(): void {}

  /** The inputs of one kind of request. */
  sent(action: ActionName): Record<string, unknown>[] {
    return this.requests.filter((request) => request.action === action).map(({ input }) => input);
  }

  /** The requests that change something. */
  get writes(): ActionName[] {
    const reads = /:(Describe|Get|List)/;
    return this.requests.map(({ action }) => action).filter((action) => !reads.test(action));
  }

  add(stack: Partial<FakeStack> & { name: string; status: string }): FakeStack {
    this.#count += 1;
    const id = `arn:aws:cloudformation:us-east-1:123456789012:stack/${stack.name}/${this.#count}`;
    const added = { parameters: {}, tags: {}, ...stack, id };
    this.stacks.push(added);
    this.#tellStatus(added);
    return added;
  }

  /** Change sets of others, too. */
  get changeSets(): string[] {
    return this.#changeSets.map(({ id }) => id);
  }

  /** Something is under way in a stack. */
  busy(stack: FakeStack, script: Script): void {
    this.#pending = { stack, script, step: 0 };
  }

  #answer(action: ActionName, input: Readonly<Record<string, string>>): unknown {
    switch (action) {
      case "cloudformation:DescribeStacks":
        return this.#describe(input.StackName);
      case "cloudformation:DescribeStackEvents":
        return {
          StackEvents: this.#eventsOf(input.StackName ?? "")
            .map(toEvent)
            .reverse(),
        };
      case "cloudformation:GetTemplate":
        return { TemplateBody: this.template };
      case "cloudformation:CreateChangeSet":
        return this.#createChangeSet(input);
      case "cloudformation:ListChangeSets":
        return {
          Summaries: this.#changeSets
            .filter(({ stack }) => stack === this.#find(input.StackName ?? ""))
            .map(({ id, name, stack }) => ({
              ChangeSetId: id,
              ChangeSetName: name,
              StackId: stack.id,
            })),
        };
      case "cloudformation:DescribeChangeSet":
        this.#changeSet(input);
        return this.changes === undefined
          ? { Status: "FAILED", StatusReason: "The submitted information didn't contain changes." }
          : {
              Status: "CREATE_COMPLETE",
              Changes: this.changes.map((change) => ({ ResourceChange: change })),
            };
      case "cloudformation:ExecuteChangeSet":
        return this.#execute(this.#changeSet(input));
      case "cloudformation:DeleteStack":
        return this.#delete(input.StackName ?? "");
      case "cloudformation:DeleteChangeSet":
        this.#changeSets = this.#changeSets.filter(({ id }) => id !== input.ChangeSetName);
        return {};
      case "dynamodb:DescribeTable":
        throw refusal("ResourceNotFoundException", "no such table");
      default:
        throw new Error(`${action} was not expected`);
    }
  }

  #find(name: string): FakeStack | undefined {
    const byId = this.stacks.find(({ id }) => id === name);
    const standing = this.stacks.filter(({ status }) => status !== "DELETE_COMPLETE");
    return byId ?? standing.find((stack) => stack.name === name);
  }

  #describe(name: string | undefined): unknown {
    if (name === undefined) return { Stacks: this.stacks.map(toStack) };
    if (this.#before !== undefined && this.stale !== undefined && this.stale.looks > 0) {
      this.stale.looks -= 1;
      if (this.stale.as === "before") return { Stacks: [toStack(this.#before)] };
      throw refusal("ValidationError", `Stack with id ${name} does not exist`);
    }
    this.#advance();
    const stack = this.#find(name);
    if (stack === undefined)
      throw refusal("ValidationError", `Stack with id ${name} does not exist`);
    return { Stacks: [toStack(stack)] };
  }

  /** Emits one event per request, so that progress can be seen. */
  #advance(): void {
    if (this.#pending === undefined) return;
    const { stack, script } = this.#pending;
    const event = script.events[this.#pending.step];
    this.#pending.step += 1;
    if (event !== undefined) {
      this.#tell(stack, event);
      return;
    }
    stack.status = script.end;
    this.#tellStatus(stack);
    this.#pending = undefined;
  }

  #createChangeSet(input: Readonly<Record<string, string>>): unknown {
    const name = String(input.StackName);
    const standing = this.#find(name);
    const isShell = standing?.status === "REVIEW_IN_PROGRESS";
    if (input.ChangeSetType === "UPDATE" && standing === undefined) {
      throw refusal("ValidationError", `Stack [${name}] does not exist`);
    }
    if (input.ChangeSetType === "CREATE" && standing !== undefined && !isShell) {
      const again = `already exists and cannot be created again with the changeSet`;
      throw refusal("ValidationError", `Stack [${name}] ${again} [${input.ChangeSetName}]`);
    }
    if (standing !== undefined && !isShell && standing.status.endsWith("_IN_PROGRESS")) {
      const state = `is in ${standing.status} state and can not be updated.`;
      throw refusal("ValidationError", `Stack:${standing.id} ${state}`);
    }
    const stack = standing ?? this.add({ name, status: "REVIEW_IN_PROGRESS" });
    const ofStack = this.#changeSets.filter((one) => one.stack === stack);
    if (ofStack.some((one) => one.name === input.ChangeSetName)) {
      throw refusal("AlreadyExistsException", `ChangeSet ${input.ChangeSetName} already exists`);
    }
    this.#count += 1;
    const id = `arn:change-set-${this.#count}`;
    const wanted = input as unknown as FakeChangeSet["wanted"];
    this.#changeSets.push({ id, name: String(input.ChangeSetName), stack, wanted });
    return { Id: id, StackId: stack.id };
  }

  #changeSet({ ChangeSetName }: Readonly<Record<string, string>>): FakeChangeSet {
    const found = this.#changeSets.find(({ id }) => id === ChangeSetName);
    if (found !== undefined) return found;
    throw refusal("ChangeSetNotFoundException", `ChangeSet [${ChangeSetName}] does not exist`);
  }

  #execute({ stack, wanted }: FakeChangeSet): unknown {
    this.#before = { ...stack };
    this.#changeSets = this.#changeSets.filter((one) => one.stack !== stack);
    const type = wanted.ChangeSetType;
    stack.status = `${type}_IN_PROGRESS`;
    for (const { ParameterKey, ParameterValue } of wanted.Parameters) {
      if (ParameterValue !== undefined) stack.parameters[ParameterKey] = ParameterValue;
    }
    stack.tags = Object.fromEntries(wanted.Tags.map(({ Key, Value }) => [Key, Value]));
    this.#tellStatus(stack);
    this.busy(stack, this.script ?? { events: [], end: SUCCESS[type] ?? "" });
    return {};
  }

  #delete(name: string): unknown {
    const stack = this.#find(name);
    if (stack === undefined) return {};
    this.#before = { ...stack };
    this.#changeSets = this.#changeSets.filter((one) => one.stack !== stack);
    if (stack.status === "REVIEW_IN_PROGRESS") {
      stack.status = "DELETE_COMPLETE";
      this.#tellStatus(stack);
      return {};
    }
    stack.status = "DELETE_IN_PROGRESS";
    this.#tellStatus(stack);
    this.busy(stack, this.deletion);
    return {};
  }

  #eventsOf(name: string): { id: string; event: FakeEvent }[] {
    const stack = this.#find(name);
    return stack === undefined ? [] : (this.#events.get(stack.id) ?? []);
  }

  /** Emits an event about the stack itself. */
  #tellStatus(stack: FakeStack): void {
    const { name, status, id } = stack;
    if (this.isSilent) return;
    this.#tell(stack, { resource: name, type: STACK_TYPE, status, physicalId: id });
  }

  #tell(stack: FakeStack, event: FakeEvent): void {
    const events = this.#events.get(stack.id) ?? [];
    this.#events.set(stack.id, [...events, { id: `event-${events.length}`, event }]);
  }
}

function toStack(stack: FakeStack): unknown {
  return {
    StackId: stack.id,
    StackName: stack.name,
    StackStatus: stack.status,
    CreationTime: stack.createdAt ?? new Date("2026-01-02T03:04:05Z"),
    Parameters: Object.entries(stack.parameters).map(([ParameterKey, ParameterValue]) => ({
      ParameterKey,
      ParameterValue,
    })),
    Tags: Object.entries(stack.tags).map(([Key, Value]) => ({ Key, Value })),
    Outputs: Object.entries(stack.outputs ?? {}).map(([OutputKey, OutputValue]) => ({
      OutputKey,
      OutputValue,
    })),
  };
}

function toEvent({ id, event }: { id: string; event: FakeEvent }): unknown {
  return {
    EventId: id,
    LogicalResourceId: event.resource,
    PhysicalResourceId: event.physicalId,
    ResourceType: event.type,
    ResourceStatus: event.status,
    ResourceStatusReason: event.reason,
  };
}
