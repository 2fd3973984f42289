"""OpenClaw's own plug-in memory-lancedb, as it lies in OpenClaw 2026.3.13, with the LanceDB of npm that it asks for."""

import base64
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_tui.providers.chain import Chain
from tests.support import real_openclaw
from tests.support.npm import installed, node
from tests.support.provider_server import Asked, Handler, Reply, shaped
from tests.support.waiting import LONG

_PACKAGES = {"@lancedb/lancedb": "0.26.2", "@sinclair/typebox": "0.34.48", "openai": "6.29.0", "jiti": "2.6.1"}
_DRIVER = """
import { createRequire } from "node:module";
const [folder, config, calls] = process.argv.slice(2);
const { createJiti } = createRequire(folder + "/package.json")("jiti");
const plugin = (await createJiti(folder + "/index.ts").import(folder + "/index.ts")).default;
const runs = {};
plugin.register({
  pluginConfig: JSON.parse(config), resolvePath: (path) => path, logger: { info() {}, warn: console.error },
  registerTool: (tool) => { runs[tool.name] = (given) => tool.execute("1", given); },
  registerCli() {}, registerService() {}, on: (name, run) => { runs[name] = run; },
});
for (const [name, given] of JSON.parse(calls)) {
  console.log(JSON.stringify((await runs[name](given)) ?? null));
}
"""


def packages() -> Path:
    """What the plug-in needs beside OpenClaw. Skips the test, with the reason, where npm cannot install it."""
    return installed(f"memory-lancedb-{real_openclaw.OLDEST}", _PACKAGES)


def folder(place: Path) -> Path:
    """A copy of the plug-in at `place` that finds its packages. Skips the test, with the reason, where npm cannot."""
    release = Path(real_openclaw.openclaw(real_openclaw.OLDEST)[-1]).parent
    shutil.copytree(release / "extensions" / "memory-lancedb", place)
    (place / "node_modules").symlink_to(packages() / "node_modules")
    (place / "driver.mjs").write_text(_DRIVER)
    return place


def call(plugin: Path, config: Mapping[str, Any], *calls: tuple[str, Mapping[str, Any]]) -> list[Any]:
    """What the tools and hooks of the plug-in answer, one process for all."""
    words = [node(), str(plugin / "driver.mjs"), str(plugin), json.dumps(config), json.dumps(calls)]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def unit_vectors(chain: Chain) -> Reply:
    """An embeddings API of OpenAI's kind over the model of `chain`, in both encodings."""
    provider = chain.provider()

    def answer(handler: Handler, asked: Asked) -> None:
        rows = provider.embed(asked.texts, "document").astype("<f4")
        as_base64 = asked.body.get("encoding_format") == "base64"
        shown = [base64.b64encode(row.tobytes()).decode() if as_base64 else row.tolist() for row in rows]
        handler.json(200, shaped(asked, shown))

    return answer
