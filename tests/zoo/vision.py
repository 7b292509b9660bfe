"""Image networks in torchvision's shape and naming, a few channels wide."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def conv_bn(inside: int, outside: int, size: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inside, outside, size, stride, size // 2, bias=False), nn.BatchNorm2d(outside)]


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = conv_bn(inside, width, 3, stride)
        self.conv2, self.bn2 = conv_bn(width, width, 3)
        self.relu = nn.ReLU(inplace=True)
        changes = stride != 1 or inside != width
        self.downsample = nn.Sequential(*conv_bn(inside, width, 1, stride)) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inside: int, width: int, stride: int) -> None:
        super().__init__()
        outside = width * self.expansion
        self.conv1, self.bn1 = conv_bn(inside, width, 1)
        self.conv2, self.bn2 = conv_bn(width, width, 3, stride)
        self.conv3, self.bn3 = conv_bn(width, outside, 1)
        self.relu = nn.ReLU(inplace=True)
        changes = stride != 1 or inside != outside
        self.downsample = nn.Sequential(*conv_bn(inside, outside, 1, stride)) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block: type[BasicBlock] | type[Bottleneck], depths: list[int], width: int, classes: int) -> None:
        super().__init__()
        self.inside = width
        self.conv1, self.bn1 = conv_bn(3, width, 7, 2)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self.stage(block, width, depths[0], 1)
        self.layer2 = self.stage(block, 2 * width, depths[1], 2)
        self.layer3 = self.stage(block, 3 * width, depths[2], 2)
        self.layer4 = self.stage(block, 4 * width, depths[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(self.inside, classes)

    def stage(self, block: type, width: int, depth: int, stride: int) -> nn.Sequential:
        blocks = []
        for index in range(depth):
            blocks.append(block(self.inside, width, stride if index == 0 else 1))
            self.inside = width * block.expansion
        return nn.Sequential(*blocks)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class UNet(nn.Module):
    """Two scales down, two transposed convolutions up, skips concatenated; a class for every pixel."""

    def __init__(self, width: int = 4, classes: int = 3) -> None:
        super().__init__()
        self.down1 = self.twice(3, width)
        self.down2 = self.twice(width, 2 * width)
        self.bottom = self.twice(2 * width, 4 * width)
        self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.join2 = self.twice(4 * width, 2 * width)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 3, stride=2, padding=1, output_padding=1)
        self.join1 = self.twice(2 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def twice(inside: int, outside: int) -> nn.Sequential:
        return nn.Sequential(
            *conv_bn(inside, outside, 3),
            nn.ReLU(inplace=True),
            *conv_bn(outside, outside, 3),
            nn.ReLU(inplace=True),
        )

    def forward(self, x: Tensor) -> Tensor:
        fine = self.down1(x)
        middle = self.down2(F.max_pool2d(fine, 2))
        coarse = self.bottom(F.max_pool2d(middle, 2))
        middle = self.join2(torch.cat([self.up2(coarse), middle], 1))
        fine = self.join1(torch.cat([self.up1(middle), fine], 1))
        return self.head(fine)


def resnet18() -> nn.Module:
    return ResNet(BasicBlock, [2, 2, 2, 2], width=4, classes=5)


def resnet50() -> nn.Module:
    return ResNet(Bottleneck, [3, 4, 6, 3], width=2, classes=5)
