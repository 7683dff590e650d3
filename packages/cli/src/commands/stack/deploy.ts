/** `deploy`: creates a stack or changes it. */

import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { leaf } from "../../frame/command.ts";
import { stackAt, stackHint } from "../../frame/hint.ts";
import { STACK_OPTIONS } from "../../store/store-options.ts";
import { Interrupted, interruptible } from "../../terminal/interruption.ts";
import {
  claimedLambda,
  DEPLOY_OPTIONS,
  type DeployOptions,
  stackOptionsOf,
} from "./deploy-options.ts";
import { type StackPlaceOptions, stackPlace } from "./deploy-place.ts";
import { planText, RESULT_SHAPE, resultJson, resultText, summaryText } from "./deploy-text.ts";

export const deploy = leaf<
  StackPlaceOptions & DeployOptions & { wait?: boolean; reset?: true; namespace: string[] }
>({
  name: "deploy",
  summary: "creates a stack on AWS, or changes it",
  details:
    "Shows what will change and asks. Options that are not given stay as they are deployed; for a " +
    "new stack, and with --reset, they have their defaults. Run it again to finish a deploy that was interrupted.",
  options: [
    ...STACK_OPTIONS,
    ...DEPLOY_OPTIONS,
    {
      flags: "-N, --namespace <name>",
      text: "namespace to register besides default",
      repeat: true,
    },
    { flags: "--reset", text: "reset options that are not given to their defaults" },
    { flags: "--wait", text: "wait until the stack is complete (default)" },
    { flags: "--no-wait", text: "start it and return" },
  ],
  confirms: true,
  examples: [
    "stack deploy --name my-app --region eu-west-1",
    "stack deploy --name my-app --lambda-memory 512 --yes",
    "stack deploy --name my-app --role-name-format pb-{} --permission-boundary PowerUser",
  ],
  json: RESULT_SHAPE,
  run: async ({ options, terminal, confirm, note, progress }) => {
    const given = stackOptionsOf(options);
    const claimed = claimedLambda(options);
    const { stackName, connection } = stackPlace(options, terminal);
    const stack = stackAt(stackName, options);
    const { deployStack } = await import("@zae-limiter/aws/deploy/deploy.ts");
    let isAgreed = false;
    const result = await interruptible(terminal, (signal) =>
      deployStack({
        stackName,
        options: given,
        connection,
        signal,
        reset: options.reset === true,
        wait: options.wait !== false,
        namespaces: options.namespace,
        ...(options.maxShards === undefined ? {} : { maxShards: Number(options.maxShards) }),
        ...claimed,
        updatedBy: `cli:${CLIENT_VERSION}`,
        confirm: async (plan) => {
          progress("");
          for (const line of plan.notes) note(line);
          note(summaryText(plan, terminal.errPalette));
          note(planText(plan));
          const verb = plan.kind === "create" ? "Create" : "Change";
          isAgreed = await confirm(`${verb} the stack ${stackName}?`);
          return isAgreed;
        },
        onStep: (step) => note(`${step} …`),
        onEvent: ({ status, type, resource, reason }) =>
          note(`  ${status} ${type} ${resource}${reason === undefined ? "" : `: ${reason}`}`),
      }),
    ).catch((error: unknown) => {
      if (error instanceof Interrupted && isAgreed) {
        note(
          `CloudFormation continues what it has begun. Follow it with: ${stackHint(["status"], stack)}. ` +
            `Finish it with: ${stackHint(["deploy"], stack)}`,
        );
      }
      throw error;
    });
    return {
      json: () => resultJson(result),
      text: () => resultText(result, stack, terminal.palette),
      code: result.outcome === "declined" ? 1 : 0,
    };
  },
});
