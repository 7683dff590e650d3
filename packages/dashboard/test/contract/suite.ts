/** Shared by tests of the dashboard's handler: requests as a browser sends them. */

import { dashboard } from "@zae-limiter/dashboard/dashboard.ts";
import type { DashboardOptions } from "@zae-limiter/dashboard/options.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { expect } from "vitest";

export const ORIGIN = "http://127.0.0.1:4983";

export interface Answer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of any form.
  readonly body: any;
}

/** A dashboard with a browser in front of it. */
export class Browser {
  readonly handler: (request: Request) => Promise<Response>;

  constructor(repository: Repository, options: Partial<DashboardOptions> = {}) {
    this.handler = dashboard(repository, { authorize: () => "ops", ...options });
  }

  async get(path: string): Promise<Answer> {
    return answerOf(await this.handler(new Request(`${ORIGIN}/api/${path}`)));
  }

  async ok(path: string): Promise<Answer["body"]> {
    const { status, body } = await this.get(path);
    expect({ path, status, body: status === 200 ? undefined : body }).toEqual({
      path,
      status: 200,
      body: undefined,
    });
    return body;
  }

  /** Asks until the numbers hold all buckets, as the page does. */
  async overview(): Promise<Answer["body"]> {
    const overview = await this.ok("overview");
    return overview.complete ? overview : this.overview();
  }

  async post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return answerOf(await this.handler(change(path, body, headers)));
  }
}

/** A change as the page sends it. */
export function change(path: string, body: unknown, headers: Record<string, string> = {}): Request {
  return new Request(`${ORIGIN}/api/${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: {
      origin: ORIGIN,
      "content-type": "application/json",
      "sec-fetch-site": "same-origin",
      "x-zae-limiter-dashboard": "1",
      ...headers,
    },
  });
}

async function answerOf(response: Response): Promise<Answer> {
  return { status: response.status, body: await response.json() };
}
