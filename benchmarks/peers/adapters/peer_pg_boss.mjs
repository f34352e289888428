// pg-boss: batches of 1000 a fetch, several fetchers, finished in one call a batch.
import { PgBoss } from "pg-boss";

const connectionString = process.env.DATABASE_URL;
const [verb, count] = [process.argv[2], Number(process.argv[3] ?? 0)];
const now = () => Number(process.hrtime.bigint()) / 1e9;
const say = (figures) => process.stdout.write(JSON.stringify(figures) + "\n");

const boss = new PgBoss({ connectionString, supervise: false, schedule: false, useListenNotify: verb === "latency" });
boss.on("error", (error) => { process.stderr.write(String(error) + "\n"); });
await boss.start();
if (verb === "setup") {
  await boss.createQueue("noop", { notify: true });
  say({ ok: true });
  await boss.stop({ graceful: false });
} else if (verb === "single") {
  const start = now();
  for (let n = 0; n < count; n++) await boss.send("noop", {});
  say({ seconds: now() - start });
  await boss.stop({ graceful: false });
} else if (verb === "bulk") {
  const start = now();
  for (let done = 0; done < count; done += 1000) {
    await boss.insert("noop", Array.from({ length: Math.min(1000, count - done) }, () => ({ data: {} })));
  }
  say({ seconds: now() - start });
  await boss.stop({ graceful: false });
} else if (verb === "work") {
  // its own polling is twice a second at best; a fetch loop is what its documentation gives for throughput
  process.on("SIGTERM", () => process.exit(0));
  let first = false;
  for (;;) {
    const jobs = await boss.fetch("noop", { batchSize: 1000 });
    if (!jobs.length) { await new Promise((resolve) => setTimeout(resolve, 5)); continue; }
    if (!first) { first = true; say({ first: now() }); }
    await boss.complete("noop", jobs.map((job) => job.id));
  }
} else {
  let came = () => {};
  await boss.work("noop", { batchSize: 1 }, async () => came(now()));
  await new Promise((resolve) => setTimeout(resolve, 1500));
  const taken = [];
  for (let n = 0; n < count; n++) {
    const at = new Promise((resolve) => { came = resolve; });
    await boss.send("noop", {});
    const sent = now();
    taken.push(Math.max(0, (await at) - sent) * 1000);
  }
  say({ milliseconds: taken });
}
process.exit(0);
