"""One ONNX file with the answer, the members and the uncertainties, for a batch of any size."""

import tempfile
from pathlib import Path

import onnxruntime
import torch
from torch import nn

import batchensemble as be

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 10))
model = be.convert(net, members=4).eval()
images = torch.randn(7, 1, 8, 8)

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "ensemble.onnx")
    names = be.export_onnx(model, images[:2], path=path, input_names=["images"])
    session = onnxruntime.InferenceSession(path)
    outputs = dict(zip(names, session.run(list(names), {"images": images.numpy()}), strict=True))
    print(f"{path.stat().st_size / 1024:.0f} kB")

prediction = model.predict(images)
for name, value in outputs.items():
    expected = prediction.outputs if name == "member_outputs" else getattr(prediction, name)
    print(f"{name:19} {value.shape!s:12} off by {abs(value - expected.numpy()).max():.1e}")
