// graphile-worker with its local queue and batched completion, as its page on performance recommends.
import { makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

const connectionString = process.env.DATABASE_URL;
const [verb, count] = [process.argv[2], Number(process.argv[3] ?? 0)];
const now = () => Number(process.hrtime.bigint()) / 1e9;
const say = (figures) => process.stdout.write(JSON.stringify(figures) + "\n");
const preset = {
  worker: {
    connectionString,
    concurrentJobs: 24,
    maxPoolSize: 10,
    pollInterval: 2000,
    localQueue: { size: 500, ttl: 300000, refetchDelay: { durationMs: 10, threshold: 0, maxAbortThreshold: 500 } },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};
// the local queue trades latency for throughput, so latency is measured without it
const lowLatency = { worker: { connectionString, concurrentJobs: 10, maxPoolSize: 11, pollInterval: 2000 } };

if (verb === "setup") {
  const utils = await makeWorkerUtils({ connectionString });
  await utils.migrate();
  await utils.release();
  say({ ok: true });
} else if (verb === "single") {
  const utils = await makeWorkerUtils({ connectionString });
  const start = now();
  for (let n = 0; n < count; n++) await utils.addJob("noop", {});
  say({ seconds: now() - start });
  await utils.release();
} else if (verb === "bulk") {
  const utils = await makeWorkerUtils({ connectionString });
  const start = now();
  for (let done = 0; done < count; done += 1000) {
    await utils.addJobs(Array.from({ length: Math.min(1000, count - done) }, () => ({ identifier: "noop", payload: {} })));
  }
  say({ seconds: now() - start });
  await utils.release();
} else {
  let first = false;
  let came = () => {};
  const runner = await run({
    preset: verb === "work" ? preset : lowLatency,
    noHandleSignals: true,
    taskList: {
      noop: () => {
        if (!first) { first = true; say({ first: now() }); }
        came(now());
      },
    },
  });
  if (verb === "work") {
    process.on("SIGTERM", () => process.exit(0));
  } else {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const client = new pg.Client({ connectionString });
    await client.connect();
    const taken = [];
    for (let n = 0; n < count; n++) {
      const at = new Promise((resolve) => { came = resolve; });
      await client.query("SELECT graphile_worker.add_job('noop', '{}'::json)");
      const sent = now();
      taken.push(Math.max(0, (await at) - sent) * 1000);
    }
    say({ milliseconds: taken });
    await client.end();
    await runner.stop();
    process.exit(0);
  }
}
