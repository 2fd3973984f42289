"""The plane of the chunks stays the same between runs, and its groups carry words of their own."""

from __future__ import annotations

import numpy as np

from memory_tui.explain.landscape import landscape, names, sampled


def test_three_heaps_lie_apart_and_stay_where_they_are() -> None:
    random = np.random.default_rng(7)
    heaps = np.repeat(np.eye(3, 16), 20, axis=0) + random.normal(0, 0.05, (60, 16))
    vectors = (heaps / np.linalg.norm(heaps, axis=1)[:, None]).astype(np.float32)
    rowids = np.arange(100, 160)
    found, again = landscape(rowids, vectors, vectors[3]), landscape(rowids, vectors.copy())
    assert np.array_equal(found.points, again.points), "the same vectors give the same plane"
    assert np.array_equal(found.groups, again.groups)
    assert found.points.min() >= -1
    assert found.points.max() <= 1
    assert 0.5 < found.share <= 1
    centres = [found.points[at : at + 20].mean(axis=0) for at in (0, 20, 40)]
    assert min(np.linalg.norm(one - other) for one in centres for other in centres if one is not other) > 0.5
    assert found.asked is not None
    assert np.allclose(found.asked, found.points[3]), "a question stands where a chunk of the same vector stands"
    for group in set(found.groups.tolist()):
        assert len({at // 20 for at in np.flatnonzero(found.groups == group)}) == 1, "a group is of one heap"
    nearest, cosine = found.nearest(3, 2)[0]
    assert nearest != 3
    assert cosine >= (vectors @ vectors[3])[np.arange(60) != 3].max() - 1e-6
    assert sum(map(len, sampled(found.groups, 8).values())) == 60


def test_one_chunk_and_equal_chunks_have_a_plane_too() -> None:
    one = np.ones((1, 4), np.float32) / 2
    assert landscape(np.array([1]), one).points.tolist() == [[0, 0]]
    assert not np.isnan(landscape(np.arange(5), np.repeat(one, 5, axis=0)).points).any()


def test_groups_are_named_by_what_sets_them_apart() -> None:
    network = ["the router and the vlan", "vlan 20 on the router", "router swap"]
    kitchen = ["豆腐 with the rice", "rice for the week", "the 豆腐 again"]
    first, second = names([network, kitchen], most=2)
    assert first == "router vlan"
    assert set(second.split()) == {"rice", "豆腐"}
    assert names([[], ["12 34"]]) == ("", "")
