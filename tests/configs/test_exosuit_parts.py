"""The parts that train and judge the exosuit's model, those that need no torch."""

from pathlib import Path

import numpy as np
import pytest

from reflexarc.configs.exosuit import report
from reflexarc.configs.exosuit.augment import Augmentation, Sampler
from reflexarc.configs.exosuit.choose import GRID, choose, join
from reflexarc.configs.exosuit.evaluate import Run, accuracy, confusion, decide, delay, windows
from reflexarc.configs.exosuit.settings import COUNTS_PER_UNIT, Policy, load
from reflexarc.configs.exosuit.watch import MIRROR, Series, to_counts

PLAIN = Augmentation(tempo=0, tilt_deg=0, effort=0, noise=0)
CONFIG = load()


def run(truth: str, decided: str) -> Run:
    """One digit a window; '-' is undecided."""
    return Run(np.array([int(c) for c in truth]), np.array([-1 if c == "-" else int(c) for c in decided]))


def ramps(*labels: int) -> list[Series]:
    """Series whose samples tell their label (x) and their place (y)."""
    place = np.arange(300)
    return [
        Series(i, "right", k, np.stack([place * 0 + k, *[place] * 5], axis=1)) for i, k in enumerate(labels)
    ]


def test_counts_restore_the_units_within_half_a_count() -> None:
    units = np.random.default_rng(1).uniform(-7.9, 7.9, size=(50, 6))
    counts = to_counts(units)
    assert counts.dtype == np.int16
    assert np.all(
        np.abs(counts / np.array(COUNTS_PER_UNIT) - units) <= 0.5 / np.array(COUNTS_PER_UNIT) + 1e-12
    )
    assert to_counts(np.full((1, 6), -100.0)).min() == -32767


def test_mirror_is_its_own_inverse_and_a_reflection() -> None:
    assert np.all(MIRROR * MIRROR == 1)
    assert MIRROR[:3].prod() == -1
    assert np.all(MIRROR[3:] == -MIRROR[:3])


def test_windows_are_whole_a_hop_apart_and_channels_first() -> None:
    counts = np.arange(CONFIG.length + 2 * CONFIG.hop + 1)[:, None].repeat(6, axis=1).astype(np.int16)
    cut = windows(counts, CONFIG)
    assert cut.shape == (3, 6, CONFIG.length)
    assert list(np.rint(cut[:, 0, 0] / CONFIG.scale)) == [0, CONFIG.hop, 2 * CONFIG.hop]


def test_sampler_without_augmentation_gives_pieces_of_the_series() -> None:
    x, labels = Sampler(ramps(3, 5), 1.0, 200, PLAIN, np.random.default_rng(1)).draw(64)
    assert x.shape == (64, 6, 200)
    assert set(labels) == {3, 5}
    assert np.allclose(x[:, 0], labels[:, None])
    assert np.allclose(np.diff(x[:, 1]), 1.0, atol=1e-4)


def test_sampler_tilts_both_sensors_by_one_rotation() -> None:
    series = [
        Series(1, "right", 0, np.random.default_rng(2).integers(-99, 99, size=(300, 6), dtype=np.int16))
    ]
    how = Augmentation(tempo=0, tilt_deg=20, effort=0, noise=0)
    tilted, _ = Sampler(series, 1.0, 200, how, np.random.default_rng(3)).draw(8)
    plain, _ = Sampler(series, 1.0, 200, PLAIN, np.random.default_rng(3)).draw(8)
    for sensor in (slice(0, 3), slice(3, 6)):
        assert np.allclose(
            np.linalg.norm(tilted[:, sensor], axis=1), np.linalg.norm(plain[:, sensor], axis=1), rtol=1e-4
        )
    assert not np.allclose(tilted, plain, atol=1.0)


def test_sampler_repeats_with_its_seed() -> None:
    first, again = (
        Sampler(ramps(1), 1.0, 200, Augmentation(), np.random.default_rng(7)).draw(4)[0] for _ in "ab"
    )
    assert np.array_equal(first, again)


def test_undecided_is_wrong() -> None:
    assert accuracy([run("1111", "-112")]) == 0.5


@pytest.mark.parametrize(
    ("truth", "decided", "begin", "expected"),
    [("1111", "--11", 0, 2), ("1111", "1111", 0, 0), ("1122", "1111", 2, None), ("112233", "111222", 2, 1)],
)
def test_delay_ends_with_the_exercise(truth: str, decided: str, begin: int, expected: int | None) -> None:
    assert delay(run(truth, decided), begin) == expected


def test_confusion_counts_every_decision_once() -> None:
    table = confusion([run("0011", "0-10"), run("1", "1")], classes=2)
    assert table.tolist() == [[1, 0, 1], [1, 2, 0]]


def test_decide_holds_as_the_node_does() -> None:
    scores = np.array([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8], [0.2, 0.8]], np.float32)
    assert decide(scores, ["a", "b"], Policy(0.5, 2, 1)).tolist() == [-1, 0, 0, 1]


def test_choose_takes_the_best_for_the_people_asked() -> None:
    right, wrong = [run("1", "1")], [run("1", "0")]
    runs = {GRID[0]: [right, wrong], GRID[1]: [wrong, right]}
    assert choose(runs, [0]) == GRID[0]
    assert choose(runs, [1]) == GRID[1]


def test_join_keeps_every_series_of_a_wrist_once() -> None:
    series = ramps(0, 1, 2)
    (order,) = join(series, np.random.default_rng(1))
    assert sorted(s.label for s in order) == [0, 1, 2]


def test_install_replaces_what_stands_between_the_marks(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"head\n{report.BEGIN}\nold\n{report.END}\ntail\n")
    report.install("new", readme)
    assert readme.read_text() == f"head\n{report.BEGIN}\n\nnew\n\n{report.END}\ntail\n"


def test_install_refuses_a_readme_without_marks(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("head\n")
    with pytest.raises(ValueError, match="marks"):
        report.install("new", readme)
