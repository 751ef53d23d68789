"""Sources of batches: what they draw, that a saved position gives the same batches, and errors."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from likewise.core.errors import FormatError, InputError
from likewise.training import ArrayBatches, Batch, LoaderBatches, ParquetBatches


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def rows(n=60, share=4):
    y = (torch.arange(n) % share == 0).long()
    return Batch(
        torch.arange(float(n))[:, None],
        y,
        sensitive_features=torch.arange(n)[:, None] % 2,
        weight=torch.arange(n) % 7 + 0.1,
    )


@pytest.fixture
def parquet(tmp_path):
    for part in range(2):
        n = 30
        frame = pd.DataFrame(
            {
                "a": np.arange(part * n, (part + 1) * n, dtype=float),
                "sex": np.where(np.arange(n) % 2, "m", "f"),
                "w": np.ones(n),
                "y": np.where(np.arange(n) % 5 == 0, "yes", "no"),
            }
        )
        frame.to_parquet(tmp_path / f"part{part}.parquet", row_group_size=7)
    return tmp_path / "part*.parquet"


def sources(kind, parquet, seed=0):
    if kind in ("balanced", "uniform", "weighted"):
        return ArrayBatches(rows(), 14, kind, generator=gen(seed))
    if kind.startswith("loader"):
        data = rows()
        own = gen(seed + 7) if kind == "loader_own" else None
        loader = DataLoader(TensorDataset(data.x, data.y), batch_size=14, shuffle=True, generator=own)
        return LoaderBatches(loader, generator=gen(seed))
    return ParquetBatches(
        parquet, "y", encode=lambda f: f[["a"]], sensitive_features=["sex"], weight="w", batch_size=6, window_rows=16,
        generator=gen(seed),
    )  # fmt: skip


KINDS = ["balanced", "uniform", "weighted", "loader", "loader_own", "parquet"]


@pytest.mark.parametrize("kind", KINDS)
def test_restored_position_gives_the_same_batches(kind, parquet):
    first = sources(kind, parquet)
    for _ in range(7):
        first.next()
    position = {name: tensor.clone() for name, tensor in first.position().items()}
    expected = [first.next().x for _ in range(12)]
    again = sources(kind, parquet, seed=5)
    again.next()
    again.restore(position)
    for x in expected:
        assert torch.equal(again.next().x, x)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_batches_and_another_seed_others(kind, parquet):
    torch.manual_seed(1)
    first = [sources(kind, parquet, 3).next().x for _ in range(1)]
    torch.manual_seed(2)
    before = torch.get_rng_state()
    second = sources(kind, parquet, 3).next().x
    assert torch.equal(first[0], second)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(sources(kind, parquet, 4).next().x, second)


def test_balanced_batches_have_as_many_of_each_class_and_no_row_twice():
    data = Batch(torch.arange(300.0)[:, None], torch.arange(300) % 10 // 8 + (torch.arange(300) % 10 == 9))
    source = ArrayBatches(data, 50, "balanced", generator=gen())
    for _ in range(20):
        batch = source.next()
        counts = torch.bincount(batch.y, minlength=3)
        assert sorted(counts.tolist()) == [16, 17, 17]


def test_everybody_is_drawn_before_anybody_is_drawn_again():
    source = ArrayBatches(rows(60), 20, "uniform", generator=gen())
    seen = torch.cat([source.next().index for _ in range(3)])
    assert sorted(seen.tolist()) == list(range(60))


def test_a_batch_is_no_larger_than_the_data():
    assert len(ArrayBatches(rows(10, 2), 1000, "balanced", generator=gen()).next()) == 10
    assert len(ArrayBatches(rows(10, 2), 1000, "uniform", generator=gen()).next()) == 10


def test_weighted_draws_follow_the_weights_and_no_longer_weigh_the_loss():
    data = Batch(torch.zeros(4, 1), torch.tensor([0, 1, 0, 1]), weight=torch.tensor([0.0, 1.0, 2.0, 5.0]))
    batch = ArrayBatches(data, 8000, "weighted", generator=gen()).next()
    shares = torch.bincount(batch.index, minlength=4) / 8000
    assert batch.weight is None
    torch.testing.assert_close(shares, torch.tensor([0.0, 0.125, 0.25, 0.625]), atol=0.02, rtol=0)


def test_parquet_covers_all_rows_and_codes_columns(parquet):
    source = ParquetBatches(
        parquet, "y", encode=lambda f: f[["a"]], sensitive_features=["sex"], sampling="uniform", batch_size=1,
        window_rows=20, generator=gen(),
    )  # fmt: skip
    drawn = [source.next() for _ in range(60)]
    assert sorted(float(b.x[0, 0]) for b in drawn) == list(range(60))
    assert source.classes == ["no", "yes"]
    assert source.sensitive_values == {"sex": ["f", "m"]}
    for batch in drawn:
        at = int(batch.x[0, 0]) % 30
        assert int(batch.y[0]) == int(at % 5 == 0)
        assert int(batch.sensitive_features[0, 0]) == at % 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: ArrayBatches(rows(), 1, "balanced", generator=gen()), "one row per class"),
        (lambda p: ArrayBatches(rows(), 0, "uniform", generator=gen()), "'batch_size' must be"),
        (lambda p: ArrayBatches(rows(), 5, "even", generator=gen()), "'sampling' must be one of"),
        (lambda p: ArrayBatches(Batch(torch.zeros(2, 1), torch.tensor([0, 1])), 2, "weighted", generator=gen()), "no weights"),
        (lambda p: LoaderBatches(iter([1]), generator=gen()), "iterated again"),
        (lambda p: LoaderBatches([], generator=gen()).next(), "the loader is empty"),
        (lambda p: LoaderBatches([3], generator=gen()).next(), "'batch' must be"),
        (lambda p: ParquetBatches(p, "yy", generator=gen()), "did you mean 'y'"),
        (lambda p: ParquetBatches(p.parent / "none.parquet", "y", generator=gen()), "files that exist"),
        (lambda p: ParquetBatches(p, "y", classes=["no", "maybe"], generator=gen()), "has the value 'yes'"),
        (lambda p: ParquetBatches(p, "y", generator=gen()), "not numeric: sex"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(make, message, parquet):
    with pytest.raises(InputError, match=message):
        make(parquet)


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    path = tmp_path / "x.parquet"
    path.write_text("hello, no parquet here")
    with pytest.raises(FormatError, match=r"x\.parquet is not a Parquet file"):
        ParquetBatches(path, "y", generator=gen())


def test_batch_lengths_must_agree():
    with pytest.raises(InputError, match="sensitive_features has 1"):
        Batch(torch.zeros(2, 1), torch.zeros(2, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.int64))
