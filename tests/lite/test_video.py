"""Video: clips from files as their data sets lay them out, moving digits, 3D ResNets, KUIPER's whole pipeline."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from asyncfl_lite import Config
from asyncfl_lite.base.errors import ConfigError, DataError, MissingLibraryError
from asyncfl_lite.models.base import InputSpec, initial_model
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.models.video import ResNet3d
from asyncfl_lite.runs.run import Run
from asyncfl_lite.tasks.video import motion
from asyncfl_lite.tasks.video import videos as decoding
from asyncfl_lite.tasks.video.motion import MovingDigits
from asyncfl_lite.tasks.video.videos import HMDB51, KINETICS_MEAN, KINETICS_STD, UCF101, Kinetics, decode_clip

RNG = np.random.default_rng


def film(path: Path, frames, width=40, height=30) -> Path:
    """Write a video of pictures, or of greys."""
    av = pytest.importorskip("av", reason="PyAV is not installed")
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for frame in frames:
            picture = np.broadcast_to(np.asarray(frame, dtype=np.uint8), (height, width, 3)).copy()
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def text(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def broken(path: Path) -> Path:
    """Write a video that ends in the middle."""
    whole = film(path, range(50, 170, 10)).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


def greys_of(inputs: torch.Tensor) -> list[int]:
    """The grey of each normalised clip's first frame, 0 to 255."""
    unit = inputs[:, :, 0].float().mean((-1, -2)) * torch.tensor(KINETICS_STD) + torch.tensor(KINETICS_MEAN)
    return (unit.mean(-1) * 255).round().int().tolist()


@pytest.mark.parametrize("ending", ["avi", "mp4"])
def test_frames_are_evenly_spaced_and_in_order(tmp_path, ending):
    path = film(tmp_path / f"clip.{ending}", range(20, 220, 10))
    clip = decode_clip(path, 4, 16)
    assert clip.shape == (3, 4, 16, 16) and clip.dtype == np.uint8
    np.testing.assert_allclose(clip.mean((0, 2, 3)), [20 + 10 * place for place in (2, 7, 12, 17)], atol=3)


def test_it_takes_the_middle_square_in_colour(tmp_path):
    picture = np.zeros((48, 96, 3), dtype=np.uint8)
    picture[:, 24:48, 0] = 200  # red left of the middle, blue right of it, black outside
    picture[:, 48:72, 2] = 200
    film(tmp_path / "clip.avi", [picture], 96, 48)
    red, green, blue = decode_clip(tmp_path / "clip.avi", 1, 24)[:, 0].astype(int)
    assert (red[:, 1:10] > 150).all() and (red[:, 14:] < 60).all()
    assert (blue[:, 14:23] > 150).all() and (blue[:, :10] < 60).all() and (green < 60).all()


def sound(path: Path) -> None:
    """Write a file of sound alone."""
    av = pytest.importorskip("av", reason="PyAV is not installed")
    with av.open(str(path), "w") as container:
        container.add_stream("pcm_s16le", rate=8000)


@pytest.mark.parametrize(
    "write", [broken, lambda path: path.write_bytes(b"RIFF of nothing" * 50), lambda path: None, sound]
)
def test_what_cannot_be_decoded_says_why(tmp_path, write):
    """Cut off, no video, missing, or sound alone."""
    path = tmp_path / "clip.avi"
    write(path)
    with pytest.raises(DataError, match="Invalid data|No such file|no video in it") as error:
        decode_clip(path, 4, 16)
    assert str(path) not in str(error.value)


def test_without_pyav_there_is_an_install_line(tmp_path, monkeypatch):
    ucf(tmp_path)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MissingLibraryError, match=r"^a video file: needs av; pip install 'asyncfl-lite\[video\]'$"):
        UCF101(folder=str(tmp_path)).load()


def ucf(folder: Path, videos: str = "UCF-101/") -> Path:
    """Two classes, three training clips of which one is cut off, two test clips."""
    place = folder / "UCF101"
    splits = place / "ucfTrainTestlist"
    train = ("Archery/v_Archery_g08_c01.avi 1", "Archery/v_Archery_g08_c02.avi 1", "YoYo/v_YoYo_g09_c01.avi 2")
    text(splits / "trainlist01.txt", *train)
    text(splits / "testlist01.txt", "YoYo/v_YoYo_g01_c01.avi", "Archery/v_Archery_g01_c01.avi")
    for name, grey in (("Archery_g08", 50), ("YoYo_g09", 100), ("YoYo_g01", 150), ("Archery_g01", 200)):
        film(place / f"{videos}{name.partition('_')[0]}/v_{name}_c01.avi", [grey] * 12)
    broken(place / f"{videos}Archery/v_Archery_g08_c02.avi")
    return place


@pytest.mark.parametrize("videos", ["UCF-101/", ""])
def test_ucf101(tmp_path, videos):
    place = ucf(tmp_path, videos)
    with pytest.warns(
        UserWarning,
        match="1 of 3 clips skipped, such as UCF-101/.*v_Archery_g08_c02.avi: Invalid data"
        if videos
        else "such as Archery/",
    ):
        task = UCF101(folder=str(tmp_path), side=16, frames=4).load()
    assert task.inputs.shape == (2, 3, 4, 16, 16) and task.inputs.dtype == torch.float32
    np.testing.assert_allclose(greys_of(task.inputs), [50, 100], atol=3)
    np.testing.assert_allclose(greys_of(task.test_inputs), [150, 200], atol=3)
    assert task.labels.tolist() == [0, 1] and task.test_labels.tolist() == [1, 0]
    assert task.class_names == ("Archery", "YoYo") and task.num_classes == 2 and task.stands_in_for == ""
    assert "split 1" in task.source and "1 training and 0 test clips skipped" in task.source
    same = UCF101(folder=str(place), side=16, frames=4).load()
    assert torch.equal(same.inputs, task.inputs)


def hmdb(folder: Path, splits: str = "test_train_splits/testTrainMulti_7030_splits") -> Path:
    place = folder / "HMDB51"
    text(place / splits / "wave_test_split1.txt", "a b#1.avi 1 ", "c.avi 2 ", "d.avi 0 ")
    text(place / splits / "clap_test_split1.txt", "e.avi 2 ", "f.avi 1 ", "g.avi 1 ")
    for name, grey in (("wave/a b#1", 40), ("wave/c", 80), ("wave/d", 10), ("clap/e", 120), ("clap/f", 160)):
        film(place / f"hmdb51_org/{name}.avi", [grey] * 9)
    return place


@pytest.mark.parametrize("splits", ["test_train_splits/testTrainMulti_7030_splits", "testTrainMulti_7030_splits"])
def test_hmdb51(tmp_path, splits):
    """Marks 1, 2 and 0 mean training, testing and neither; a video that isn't there is skipped."""
    hmdb(tmp_path, splits)
    with pytest.warns(UserWarning, match="such as hmdb51_org/clap/g.avi: No such file"):
        task = HMDB51(folder=str(tmp_path), side=16, frames=3).load()
    assert task.class_names == ("clap", "wave")
    np.testing.assert_allclose(greys_of(task.inputs), [160, 40], atol=3)
    np.testing.assert_allclose(greys_of(task.test_inputs), [120, 80], atol=3)
    assert task.labels.tolist() == [0, 1] == task.test_labels.tolist()
    assert task.inputs.shape[1:] == (3, 3, 16, 16)


@pytest.mark.parametrize("by_class", [False, True])
def test_kinetics(tmp_path, by_class):
    place = tmp_path / "kinetics"
    head = "label,youtube_id,time_start,time_end,split,is_cc"
    text(place / "annotations/train.csv", head, "tap dancing,-AbC_1,7,17,train,0", '"abseiling",xyz,0,10,train,0')
    text(place / "annotations/val.csv", head, "abseiling,v01,3,13,val,0", "tap dancing,gone,1,11,val,0")
    for kind, label, name, grey in (
        ("train", "tap_dancing", "-AbC_1_000007_000017", 60),
        ("train", "abseiling", "xyz_000000_000010", 90),
        ("val", "abseiling", "v01_000003_000013", 130),
    ):
        film(place / kind / (label if by_class else "") / f"{name}.mp4", [grey] * 10)
    with pytest.warns(UserWarning, match="gone_000001_000011.mp4: No such file"):
        task = Kinetics(folder=str(tmp_path), side=16, frames=2).load()
    assert task.class_names == ("abseiling", "tap dancing")
    assert task.labels.tolist() == [1, 0] and task.test_labels.tolist() == [0]
    np.testing.assert_allclose(greys_of(task.inputs), [60, 90], atol=3)
    np.testing.assert_allclose(greys_of(task.test_inputs), [130], atol=3)
    assert "0 training and 1 test clips skipped" in task.source


def test_kinetics_takes_every_word_as_it_is(tmp_path):
    for kind in ("train", "val"):
        text(tmp_path / f"{kind}.csv", "label,youtube_id,time_start,time_end", "null,NA,7,17", ",xyz,0,10")
    for kind, clips in zip(("train", "val"), Kinetics().listing(tmp_path), strict=True):
        assert clips == [(f"{kind}/NA_000007_000017.mp4", "null"), (f"{kind}/xyz_000000_000010.mp4", "")]


@pytest.mark.filterwarnings("ignore:.*skipped")
def test_clips_are_decoded_once_and_again_when_a_file_changes(tmp_path, monkeypatch):
    place, cache = ucf(tmp_path), tmp_path / "kept"
    monkeypatch.setenv("ASYNCFL_CACHE", str(cache))
    source = UCF101(folder=str(tmp_path), side=16, frames=4)
    first = source.load()

    decoded = []
    monkeypatch.setattr(decoding, "decode_clip", lambda path, *size: decoded.append(path) or decode_clip(path, *size))
    again = source.load()
    assert torch.equal(again.inputs, first.inputs) and torch.equal(again.test_labels, first.test_labels)
    assert again.source == first.source and not decoded
    film(place / "UCF-101/Archery/v_Archery_g08_c02.avi", [75] * 12)
    repaired = source.load()
    np.testing.assert_allclose(greys_of(repaired.inputs), [50, 75, 100], atol=3)
    assert len(decoded) == 3  # the test clips are as they were
    for number, kept in enumerate(sorted(cache.glob("clips/ucf101-train-4x16-*"))):  # of both lists of clips
        content = kept.read_bytes()
        at = len(content) // 2
        kept.write_bytes(content[:at] + bytes([content[at] ^ 1]) * (1 - number) + content[at + 1 :])
    assert torch.equal(source.load().inputs, repaired.inputs) and len(decoded) == 6
    source.model_copy(update={"frames": 2}).load()
    assert len(decoded) == 11
    monkeypatch.setenv("ASYNCFL_CACHE", str(place / "ucfTrainTestlist/testlist01.txt"))  # no folder
    with pytest.warns(UserWarning, match="cannot be written .* until ASYNCFL_CACHE names another folder"):
        assert torch.equal(source.load().inputs, repaired.inputs)


@pytest.mark.filterwarnings("ignore:.*skipped")
@pytest.mark.parametrize("name", ["cross", "natural", "synthetic"])
def test_unlabelled_clips_look_like_the_tasks_own(tmp_path, name, monkeypatch):
    ucf(tmp_path)
    task = UCF101(folder=str(tmp_path), side=20, frames=5).load()
    one, again, other = (task.unlabelled_set(name, 7, RNG(seed)) for seed in (0, 0, 1))
    assert one.shape == (7, 3, 5, 20, 20) and one.dtype == task.inputs.dtype
    assert torch.isfinite(one).all() and torch.equal(one, again)
    assert name == "natural" or not torch.equal(one, other)  # clips of one grey each are alike, zoomed or not
    monkeypatch.setattr(decoding, "replayed", lambda clips, count, rng: clips[:count])
    assert torch.equal(task.unlabelled_set("natural", 2, RNG(0)), task.inputs[:2])  # of training clips


@pytest.mark.parametrize("classes", ["federated", "teachers"])
def test_moving_digits(classes):
    task = MovingDigits(classes=classes).load()
    assert task.inputs.shape == (2000, 1, 8, 16, 16) and len(task.test_inputs) == 800
    assert task.labels.bincount().tolist() == [50] * 40 and task.test_labels.bincount().tolist() == [20] * 40
    assert abs(float(task.inputs.mean())) < 1e-4 and float(task.inputs.std()) == pytest.approx(1, abs=1e-3)
    assert task.stands_in_for and task.class_names[4:8] == tuple(
        f"1 {way}" for way in (("right", "left", "down", "up") if classes == "federated" else motion.DIAGONAL)
    )
    same = MovingDigits(classes=classes).load()
    assert torch.equal(task.inputs, same.inputs)
    # where the light's centre goes is the class's way
    light = task.test_inputs - task.test_inputs.min()
    place = torch.arange(16.0)
    total = light.sum((1, 3, 4))
    across, down = ((light.sum((1, axis)) * place).sum(-1) / total for axis in (3, 4))
    went = torch.stack([(way[:, 5] - way[:, 2]).round().sign() for way in (across, down)], 1)
    ways = torch.tensor(list((motion.STRAIGHT if classes == "federated" else motion.DIAGONAL).values()))
    assert (went == ways[task.test_labels % 4]).all(1).float().mean() > 0.97


def test_no_digit_is_in_two_of_the_sets():
    labels = motion.digits_images()[1].numpy()
    clients, teachers, tests = motion._split(labels)
    assert (len(clients), len(teachers), len(tests)) == (958, 479, 360)
    assert len({*clients, *teachers, *tests}) == 1797
    for part in (clients, teachers, tests):
        assert np.bincount(labels[part]).min() > 0.8 * len(part) / 10
    # and the clips are made of them
    task = MovingDigits(clips=40, test_clips=40).load()
    shown = digits_in(task.inputs)
    assert {*shown} <= {*clients} and (labels[shown] == task.labels.numpy() // 4).all()


def digits_in(clips: torch.Tensor) -> np.ndarray:
    """Return the index of the digit in each clip, found in a frame in the middle."""
    images = motion.digits_images()[0][:, 0].flatten(1)
    light = (clips[:, 0, 3] - clips.min()) / (clips.max() - clips.min())
    windows = light.unfold(1, 8, 1).unfold(2, 8, 1).reshape(len(clips), -1, 64)
    distance, index = torch.cdist(windows, images.expand(len(clips), -1, -1)).amin(1).min(1)
    assert distance.max() < 0.01
    return index.numpy()


@pytest.mark.parametrize("classes", ["federated", "teachers"])
def test_digits_that_the_seed_splits_are_in_one_part_only(classes):
    source = MovingDigits(classes=classes, clips=200, test_clips=60, split="seeded")
    clients, teachers, tests = (set(part.tolist()) for part in motion._split(motion.digits_images()[1].numpy()))
    shown = {}
    for seed in (0, 3):
        task = source.load().of_run(seed)
        parts = (task.samples[0], task.validation[0], task.test_inputs)
        shown[seed] = mine, validation, tested = [set(digits_in(part).tolist()) for part in parts]
        assert tested <= tests and not mine & validation
        assert mine | validation <= (clients if classes == "federated" else teachers)
    assert all(a != b for a, b in zip(shown[0], shown[3], strict=True))


def test_it_is_torchvisions_network():
    from torchvision.models.video import r3d_18

    theirs = r3d_18(weights=None).eval()
    mine = ResNet3d(width=64, blocks="resnet18", norm="batch").build((3, 8, 112, 112), 400).eval()
    mine.load_state_dict(theirs.state_dict())
    assert sum(parameter.numel() for parameter in mine.parameters()) == 33_371_472
    clips = torch.randn(1, 3, 4, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(mine(clips), theirs(clips))


def test_sizes_and_outputs():
    module = ResNet3d().build((1, 8, 16, 16), 40)
    assert VectorModel(module).num_parameters == 58_768 and VectorModel(module).num_buffers == 0
    assert module(torch.zeros(2, 1, 8, 16, 16)).shape == (2, 40)
    assert VectorModel(ResNet3d(norm="batch").build((1, 8, 16, 16), 40)).num_buffers > 0
    with pytest.raises(ConfigError, match="^blocks: 'resnet43' is not known; did you mean 'resnet34'"):
        ResNet3d(blocks="resnet43")
    with pytest.raises(ConfigError, match="num_channels .3. must be divisible"):
        initial_model(ResNet3d(width=3), InputSpec((1, 8, 16, 16), 40), 0)


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_of_a_frozen_network_only_the_last_layer_is_in_the_vector(norm):
    spec, shape = ResNet3d(norm=norm, trainable="last"), InputSpec((1, 8, 16, 16), 40)
    module, whole = initial_model(spec, shape, 3), initial_model(spec.whole, shape, 3)
    model = VectorModel(module)
    assert [slot.name for slot in model.parameter_slots] == ["fc.weight", "fc.bias"] and model.num_buffers == 0
    clips = torch.randn(4, 1, 8, 16, 16, generator=torch.Generator().manual_seed(0))
    x, _ = model.flatten()
    trained, used = model(x, clips, train=True), model(x, clips)
    assert torch.equal(trained, used)  # BatchNorm goes by its own statistics in training too
    with torch.no_grad():
        torch.testing.assert_close(used, whole.eval()(clips))
    assert list(module.state_dict()) == list(whole.state_dict())
    # it is loaded, copied and moved with the rest
    other = initial_model(spec.whole, shape, 4)
    module.load_state_dict(other.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(module.eval()(clips), other.eval()(clips))
        assert module.double()(clips.double()).dtype == torch.float64
    with pytest.raises(RuntimeError, match="Missing key"):
        module.load_state_dict({"fc.weight": module.fc.weight, "fc.bias": module.fc.bias})


@pytest.mark.long
def test_the_whole_pipeline():
    """Teacher, assistant and student on classes A, a new last layer, then federated KUIPER on classes B."""
    servers = {"classes": "teachers", "clips": 400, "test_clips": 40}
    config = Config(
        task="movingdigits", task_settings={"clips": 480, "test_clips": 400}, model="resnet3d", model_settings={"width": 4},
        algorithm="kuiper", clients=12, buffer_size=4, delay="kuiper_hmdb51", batch_size=10, client_lr=0.1, rounds=5,
        initial="teacher_chain",
        initial_settings={"task": "movingdigits", "task_settings": servers, "epochs": 10, "batch_size": 50},
    )  # fmt: skip
    assert [sum(spec.blocks) for spec in config.initial_settings.chain(config.model_settings)] == [6, 4, 3]
    taught, random = Run(config), Run(config.replace(initial="random"))
    slots = {slot.name: torch.equal(*(run.algorithm.x[slot.start : slot.stop] for run in (taught, random)))
             for slot in taught.model.parameter_slots}  # fmt: skip
    assert [name for name, same in slots.items() if same] == ["fc.weight", "fc.bias"]  # drawn anew
    assert sum(map(len, taught.parts)) == 480  # clients keep all of theirs
    ends = [one.finish().curve["accuracy"].iloc[-1] for one in (taught, random)]
    assert ends[0] > ends[1] + 0.02 and ends[0] > 0.05  # chance is 0.025
