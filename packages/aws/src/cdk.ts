/** The entry point `zae-limiter/cdk`: the stack of the template and limits in it, as constructs. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { CFN_RESOURCE_TYPE, cfnProperties } from "@zae-limiter/limiter/manifest/cfn.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { CfnDeletionPolicy, CfnOutput, CfnResource, Fn, Lazy } from "aws-cdk-lib";
import { Asset } from "aws-cdk-lib/aws-s3-assets";
import { Construct } from "constructs";
import { intentFor } from "./deploy/plan.ts";
import type { LambdaName } from "./lambda/function-names.ts";
import { lambdaPackage } from "./lambda/lambda-package.ts";
import type { StackOptions } from "./options/stack-options.ts";
import { type PolicyComponent, stackParameters } from "./options/stack-parameters.ts";
import type { CfnValue, CfnResource as ResourceData } from "./template/cfn.ts";
import { policyId } from "./template/policies.ts";
import { type ResolvedTemplate, resolveTemplate } from "./template/resolve.ts";
import { TABLE } from "./template/table.ts";
import { stackTemplate } from "./template/template.ts";

/** The options of a deployment, and the name that is otherwise that of the stack. */
export interface ZaeLimiterProps extends StackOptions {
  /** The name of the table, and the beginning of all other names. */
  readonly name: string;
  /** Whether the outputs are exported, as those of `zae-limiter stack deploy` are. Default true. */
  readonly exportOutputs?: boolean;
}

/** Resources that take tags as a list. */
const TAGGABLE: ReadonlySet<string> = new Set([
  "AWS::DynamoDB::Table",
  "AWS::IAM::Role",
  "AWS::Lambda::Function",
  "AWS::Logs::LogGroup",
  "AWS::S3::Bucket",
  "AWS::SNS::Topic",
  "AWS::SQS::Queue",
]);

/** The Lambdas of the template, and the package each one runs. */
const FUNCTIONS: Readonly<Record<string, LambdaName>> = {
  AggregatorFunction: "aggregator",
  ProvisionerFunction: "provisioner",
};

/**
 * A limiter in a stack of one's own: the same resources as `zae-limiter stack deploy` makes.
 * Afterwards: `zae-limiter stack upgrade --force --name <name>` for its version record, and
 * `zae-limiter namespace register default --name <name>`.
 *
 * @example
 * ```ts
 * import { App, Stack } from 'aws-cdk-lib';
 * import { ZaeLimiter } from 'zae-limiter/cdk';
 * const stack = new Stack(new App(), 'Backend');
 * const limiter = new ZaeLimiter(stack, 'Limiter', { name: 'my-app', enableAggregator: false });
 * console.log(limiter.tableName); // my-app
 * ```
 */
export class ZaeLimiter extends Construct {
  /** The name of the table, which is known already. */
  readonly tableName: string;
  readonly tableArn: string;
  /** The ARN of the table's stream. */
  readonly streamArn: string;
  readonly #resources: ReadonlyMap<string, CfnResource>;
  readonly #data: ResolvedTemplate;
  readonly #tags: readonly CfnValue[];

  constructor(scope: Construct, id: string, props: ZaeLimiterProps) {
    super(scope, id);
    const { name, exportOutputs = true, ...given } = props;
    // Names that are too long and the like are refused as deploying would.
    const { options } = intentFor(name, given, undefined, false);
    this.tableName = name;
    this.#tags = Object.entries(given.tags ?? {}).map(([Key, Value]) => ({ Key, Value }));
    this.#data = resolveTemplate(stackTemplate(), {
      ...stackParameters(options, name),
      "AWS::StackName": name,
    });
    this.#resources = new Map(
      Object.entries(this.#data.Resources).map(([logicalId, resource]) => [
        logicalId,
        this.#add(logicalId, resource),
      ]),
    );
    for (const [logicalId, { DependsOn = [] }] of Object.entries(this.#data.Resources)) {
      for (const other of [DependsOn].flat() as string[]) {
        this.#resource(logicalId).node.addDependency(this.#resource(other));
      }
    }
    this.tableArn = this.#attribute(TABLE, "Arn");
    this.streamArn = this.#attribute(TABLE, "StreamArn");
    if (exportOutputs) this.#addOutputs();
  }

  /** The ARN of the function that applies limits of templates; a stack may have none. */
  get provisionerArn(): string {
    return this.#attribute("ProvisionerFunction", "Arn");
  }

  /** Returns the ARN of a policy to attach, such as `acq`; a stack without IAM has none. */
  policyArn(policy: PolicyComponent): string {
    return String(this.#resource(policyId(policy)).ref);
  }

  #add(logicalId: string, resource: ResourceData): CfnResource {
    const lambda = FUNCTIONS[logicalId];
    const properties = Object.entries(this.#tagged(resource)).map(([property, value]) => [
      property,
      // Lazy, because the resources that the value refers to may be created later.
      Lazy.any({ produce: () => this.#translate(value as CfnValue) }),
    ]);
    const code = lambda === undefined ? {} : { Code: this.#code(lambda) };
    const made = new CfnResource(this, logicalId, {
      type: resource.Type,
      properties: { ...Object.fromEntries(properties), ...code },
    });
    const policies = {
      Delete: CfnDeletionPolicy.DELETE,
      Retain: CfnDeletionPolicy.RETAIN,
      RetainExceptOnCreate: CfnDeletionPolicy.RETAIN_EXCEPT_ON_CREATE,
    } as const;
    const { DeletionPolicy, UpdateReplacePolicy } = resource;
    if (DeletionPolicy !== undefined) made.cfnOptions.deletionPolicy = policies[DeletionPolicy];
    if (UpdateReplacePolicy !== undefined) {
      made.cfnOptions.updateReplacePolicy = policies[UpdateReplacePolicy];
    }
    return made;
  }

  /** Adds the tags to each resource: this stack belongs to the caller and does not have them. */
  #tagged({ Type, Properties }: ResourceData): ResourceData["Properties"] {
    if (this.#tags.length === 0 || !TAGGABLE.has(Type)) return Properties;
    const { Tags = [] } = Properties;
    return { ...Properties, Tags: [...(Tags as readonly CfnValue[]), ...this.#tags] };
  }

  /** Returns the code of a Lambda: the CDK wants a file, copies it at once and uploads it. */
  #code(lambda: LambdaName): { readonly S3Bucket: string; readonly S3Key: string } {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
    try {
      const path = join(folder, `${lambda}.zip`);
      writeFileSync(path, lambdaPackage(lambda));
      const asset = new Asset(this, `${lambda}-code`, { path });
      return { S3Bucket: asset.s3BucketName, S3Key: asset.s3ObjectKey };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  #addOutputs(): void {
    for (const [name, output] of Object.entries(this.#data.Outputs)) {
      const exportName = output.Export?.Name;
      new CfnOutput(this, `Output${name}`, {
        description: output.Description,
        value: Lazy.string({ produce: () => this.#translate(output.Value) as string }),
        ...(typeof exportName === "string" ? { exportName } : {}),
      });
    }
  }

  /** References to resources of the template, as references to those of this construct. */
  #translate(value: CfnValue): unknown {
    if (Array.isArray(value)) return value.map((part) => this.#translate(part as CfnValue));
    if (typeof value !== "object") return value;
    const { Ref, "Fn::GetAtt": path, "Fn::Sub": text } = value as Record<string, unknown>;
    if (typeof Ref === "string" && this.#resources.has(Ref)) return this.#resource(Ref).ref;
    if (Array.isArray(path)) return this.#attribute(...(path as [string, string]));
    if (typeof text === "string") return this.#substitute(text);
    return Object.fromEntries(
      Object.entries(value).map(([name, part]) => [name, this.#translate(part as CfnValue)]),
    );
  }

  #substitute(text: string): string {
    const variables: Record<string, string> = {};
    const renamed = text.replaceAll(/\$\{([\w.]+)\}/g, (whole, name: string) => {
      const [id = "", attribute] = name.split(".");
      if (!this.#resources.has(id)) return whole;
      const variable = name.replace(".", "");
      variables[variable] =
        attribute === undefined ? String(this.#resource(id).ref) : this.#attribute(id, attribute);
      return `\${${variable}}`;
    });
    return Fn.sub(renamed, variables);
  }

  #attribute(logicalId: string, name: string): string {
    return this.#resource(logicalId).getAtt(name).toString();
  }

  #resource(logicalId: string): CfnResource {
    const resource = this.#resources.get(logicalId);
    if (resource === undefined) {
      throw new InfrastructureError(`There is no ${logicalId} with these options`);
    }
    return resource;
  }
}

/** The limits of a namespace, and the limiter that keeps them. */
export interface ZaeLimitsProps {
  /** A `ZaeLimiter`, or the name of a limiter that is deployed already. */
  readonly limiter: { readonly tableName: string; readonly provisionerArn: string } | string;
  /** The text of a limits file, or its fields as an object. */
  readonly limits: string | Readonly<Record<string, unknown>>;
  /** Whether every update of the stack applies like `limits apply --full`. Default false. */
  readonly full?: boolean;
}

/**
 * Limits of a namespace, which are applied when the stack is deployed, with the rules of `limits
 * apply`: quotas, sessions, windows and slots as in a limits file. Invalid limits fail the
 * synthesis. The namespace must be registered before the stack of the limits is deployed.
 *
 * @example
 * ```ts
 * import { App, Stack } from 'aws-cdk-lib';
 * import { ZaeLimits } from 'zae-limiter/cdk';
 * const stack = new Stack(new App(), 'Limits');
 * const api = { limits: ['req:10000/month Europe/Berlin', 'rpm:100'] };
 * const limits = { namespace: 'default', resources: { api } };
 * new ZaeLimits(stack, 'Limits', { limiter: 'my-app', limits });
 * ```
 */
export class ZaeLimits extends Construct {
  constructor(scope: Construct, id: string, { limiter, limits, full = false }: ZaeLimitsProps) {
    super(scope, id);
    const manifest = parseManifest(typeof limits === "string" ? limits : JSON.stringify(limits));
    const isNamed = typeof limiter === "string";
    const tableName = isNamed ? limiter : limiter.tableName;
    const serviceToken = isNamed
      ? Fn.importValue(`${limiter}-ProvisionerArn`)
      : limiter.provisionerArn;
    const properties = cfnProperties(manifest, tableName, { full });
    const resource = new CfnResource(this, "Resource", {
      type: CFN_RESOURCE_TYPE,
      properties: { ServiceToken: serviceToken, ...(asObjects(properties) as object) },
    });
    if (limiter instanceof Construct) resource.node.addDependency(limiter);
  }
}

/** Returns data with objects in place of maps, which the CDK does not know. */
function asObjects(data: unknown): unknown {
  if (Array.isArray(data)) return data.map(asObjects);
  if (typeof data !== "object" || data === null) return data;
  const entries = data instanceof Map ? [...data] : Object.entries(data);
  return Object.fromEntries(entries.map(([name, part]) => [name, asObjects(part)]));
}
