"""Embedding providers: from texts to unit vectors, with every failure as a value.

- answer_vectors: The vectors of an answer: its rows in the order of the texts, at length one. -> unit_vectors
- batch: A batch service turns a file of texts into a file of vectors. -> BatchService
- batch_format: The wire format of a batch service, as data. -> BatchFormat
- chain: The chain of providers decides when the fallback takes the place of the one in use. -> Chain
- chain_member: A chain member is one provider with its health. -> ChainMember
- download: The download of a model file. -> fetch
- failures: Why a provider gave no vectors: a closed set of states, each with its remedy. -> ProviderFailure
- http_client: The HTTP client posts JSON to a provider; a failure never shows a secret. -> Http
- http_provider: A provider over HTTP. -> Remote
- provider_protocol: The protocol of a provider. -> Provider
- provider_options: The options of a provider. -> ProviderSettings
- registry: The table of providers: one line for each file of `wires`, by its name. -> TABLE
- serving: The serving provider as a status reports it. -> ServingProvider
- wires: One file for each provider.
"""
