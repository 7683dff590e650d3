/** Workers in processes of their own. */

import { type ChildProcess, spawn } from "node:child_process";
import { shippedFile } from "@zae-limiter/limiter/base/shipped-file.ts";
import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import type { Fleet } from "@zae-limiter/loadtest/fleet.ts";
import type { LoadChange } from "@zae-limiter/loadtest/model.ts";
import type { Plan } from "@zae-limiter/loadtest/plan.ts";
import type { LostWorker } from "@zae-limiter/loadtest/results.ts";
import { Slice } from "@zae-limiter/loadtest/slice.ts";
import type { Order, Report, StoreAddress } from "@zae-limiter/loadtest/worker-process.ts";
import { CommandFailure } from "../frame/command.ts";

const START =
  "const { runWorkerProcess } = await import(process.argv[1]); await runWorkerProcess();";
/** A worker that dies again and again is not replaced without end. */
const LOST_MAX = 10;

interface ProcessFleetOptions {
  readonly file: string;
  readonly store: StoreAddress;
  readonly plan: Plan;
  readonly workers: number;
  readonly onSlice: (worker: number, slice: Slice) => void;
  readonly onLost: (lost: LostWorker) => void;
}

export class ProcessFleet implements Fleet {
  readonly #options: ProcessFleetOptions;
  readonly #members: Member[] = [];
  #startedMs = 0;
  #isStopped = false;
  #lost = 0;
  #change: LoadChange = {};

  constructor(options: ProcessFleetOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { workers } = this.#options;
    const members = Array.from({ length: workers }, (_, worker) => this.#start(worker, 0));
    try {
      await Promise.all(members.map((member) => member.ready));
    } catch (error) {
      for (const member of members) member.kill();
      await Promise.all(members.map((member) => member.ended.catch(() => undefined)));
      throw new CommandFailure(`A worker could not start: ${(error as Error).message}`);
    }
    this.#startedMs = systemTimer.nowMs();
    await Promise.all(members.map((member) => this.#work(member)));
  }

  change(change: LoadChange): void {
    this.#change = { ...this.#change, ...change };
    for (const member of this.#members) member.send({ type: "change", change });
  }

  stop(): void {
    this.#isStopped = true;
    for (const member of this.#members) member.send({ type: "stop" });
  }

  #start(worker: number, doneMs: number): Member {
    const { file, store, plan, workers, onSlice } = this.#options;
    const place = { worker, workers, doneMs };
    const order: Order = { type: "prepare", file, store, plan, place };
    const member = new Member(worker, order, (slice) => onSlice(worker, slice));
    this.#members.push(member);
    return member;
  }

  /** Lets a worker work; one that dies is counted, and another one does the rest of its part. */
  async #work(member: Member): Promise<void> {
    member.send({ type: "begin" });
    if (this.#isStopped) member.send({ type: "stop" });
    else member.send({ type: "change", change: this.#change });
    try {
      await member.ended;
    } catch (error) {
      const atMs = systemTimer.nowMs() - this.#startedMs;
      this.#lost += 1;
      this.#options.onLost({ worker: member.worker, atMs, reason: (error as Error).message });
      if (this.#isStopped || atMs >= this.#options.plan.durationMs) return;
      if (this.#lost > LOST_MAX) {
        this.stop();
        throw new CommandFailure(`More than ${LOST_MAX} workers died: ${(error as Error).message}`);
      }
      const next = this.#start(member.worker, atMs);
      await next.ready.catch(() => undefined);
      await this.#work(next);
    }
  }
}

class Member {
  readonly worker: number;
  readonly ready: Promise<void>;
  /** Fails when the process ends without having said that it is done. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;

  constructor(worker: number, order: Order, onSlice: (slice: Slice) => void) {
    this.worker = worker;
    const child = spawn(
      process.execPath,
      [...process.execArgv, "--input-type=module", "-e", START, workerEntry()],
      { stdio: ["ignore", "ignore", "inherit", "ipc"] },
    );
    this.#child = child;
    let isReady: () => void = () => undefined;
    let refuse: (error: Error) => void = () => undefined;
    this.ready = new Promise((resolve, reject) => {
      isReady = resolve;
      refuse = reject;
    });
    this.ready.catch(() => undefined);
    this.ended = new Promise((resolve, reject) => {
      let failure: string | undefined;
      let isDone = false;
      child.on("message", (report: Report) => {
        if (report.type === "ready") isReady();
        else if (report.type === "slice") onSlice(Slice.fromWire(report.slice));
        else {
          isDone = report.type === "done";
          failure = report.type === "failed" ? report.message : undefined;
          if (child.connected) child.disconnect();
        }
      });
      // Reports may be on their way when the process has ended: the channel closes after the last.
      const exit = new Promise<string>((resolve) => {
        child.on("exit", (code, signal) => resolve(`ended with ${signal ?? `exit code ${code}`}`));
        child.on("error", (error) => resolve(error.message));
      });
      const hungUp = new Promise<void>((resolve) => void child.once("disconnect", resolve));
      void Promise.all([exit, hungUp]).then(([how]) => {
        if (isDone) return resolve();
        const error = new Error(failure ?? how);
        refuse(error);
        reject(error);
      });
    });
    this.ended.catch(() => undefined);
    this.send(order);
  }

  send(order: Order): void {
    if (this.#child.connected) this.#child.send(order, () => undefined);
  }

  kill(): void {
    this.#child.kill();
  }
}

function workerEntry(): string {
  const entry = shippedFile("loadtest/worker-entry.js", import.meta.url);
  if (entry !== undefined) return entry.href;
  throw new CommandFailure(
    "The code of the workers is not in this installation: install zae-limiter again, or run npm " +
      "run build in a checkout of it",
  );
}
