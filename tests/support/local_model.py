"""A stand-in for the process of a local model that keeps to its protocol: what it does is told by the text."""

STAND_IN = """
import array, json, os, sys, time
_, kind, model, threads = sys.argv
def say(header, data=b""):
    sys.stdout.buffer.write(json.dumps(header).encode() + b"\\n" + data)
    sys.stdout.buffer.flush()
open(model + ".threads", "w").write(threads)
mode = open(model, errors="replace").read()[4:]
if mode == "broken":
    say({"error": "unknown architecture"}); sys.exit()
if mode == "aborts":
    sys.stderr.write("noise\\nGGML_ASSERT(x) failed\\n"); sys.stderr.flush(); os.abort()
say({"dims": 3, "limit": 512})
for line in sys.stdin:
    text = json.loads(line)["text"]
    if text == "abort" or (text == "abort once" and not os.path.exists(model + ".died")):
        open(model + ".died", "w").close()
        sys.stderr.write("GGML_ASSERT(y) failed\\n"); sys.stderr.flush(); os.abort()
    if text == "hang":
        open(model + ".hangs", "w").write(str(os.getpid()))
        time.sleep(60)
    if text == "refuse":
        say({"error": "no room"})
        continue
    out = {"nan": [float("nan"), 0, 0], "zero": [0, 0, 0]}.get(text, [3.0, 0.0, len(text)])
    say({"dims": 3}, array.array("f", out).tobytes())
"""
