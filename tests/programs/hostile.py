"""Objects whose every special method cries out: reading features of them must run none of it."""

import sys

cries = []


def cry(name):
    def method(self, *args, **kwargs):
        cries.append(name)
        raise RuntimeError(name)

    return method


class Meta(type):
    __name__ = property(cry("meta __name__"))
    __hash__ = cry("meta __hash__")
    __eq__ = cry("meta __eq__")
    __instancecheck__ = cry("meta __instancecheck__")
    __getattribute__ = cry("meta __getattribute__")


HOSTILE = ("__len__", "__getattribute__", "__getattr__", "__hash__", "__eq__", "__bool__", "__index__", "__float__",
           "__int__", "__iter__", "__repr__", "__str__", "__contains__", "__length_hint__", "__sizeof__")  # fmt: skip


def make():
    space = {name: cry(name) for name in HOSTILE}
    space["__class__"] = property(cry("__class__"))
    space["__del__"] = lambda self: cries.append("__del__") if not sys.is_finalizing() else None
    return Meta("Hostile", (), space)


Hostile = make()


class SubList(list):
    __len__ = cry("list __len__")


class SubInt(int):
    __float__ = cry("int __float__")
    __index__ = cry("int __index__")


def takes(anything, *args, **kwargs):
    return None


kept = [object.__new__(Hostile), SubList([1]), SubInt(3), 10**400, float("nan"), "\udc80", None, ...]
for each in kept:
    takes(each, each, key=each)
takes(range(10), b"abc", key={1: 2})
print("cries:", cries)
