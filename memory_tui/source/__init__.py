"""The seam for stores. A store fulfils its protocols and returns its values.

A store knows this package and never `search`; `search`, `explain`, `tune`, `notes`, `inbox` and `tui` know this
package and never a store. A new store is a package that passes the contract tests.
"""
