"""One file for each provider. Its row has hosts, key variables, models, prices and wire format.

- builtin: The default provider: a static table of token vectors; no key, no network. -> Builtin
- gemini: Gemini's embedding endpoints, single or batch. -> gemini
- llama_worker: The process that holds a local model, so that a crash of native code ends nothing else. -> main
- local: The provider `local`: a GGUF model on this machine. -> LOCAL
- mistral: Mistral's embedding endpoint. -> mistral
- model_process: A model on this machine runs in a process of its own. -> ModelProcessProvider
- none: The provider `none`: no vectors on purpose; search uses words alone. -> NoProvider
- ollama: Ollama's embedding endpoint. -> ollama
- onnx: The provider `onnx`: an ONNX model on this machine, which needs no compiler. -> ONNX
- onnx_worker: The process that holds an ONNX model, so that a crash of native code ends nothing else. -> main
- openai: OpenAI's embedding endpoints, single or batch, which compatible providers share. -> openai
- scripted: A provider for tests: vectors are hashes of words. -> Scripted
- voyage: Voyage's embedding endpoints, single or batch. -> voyage
"""
