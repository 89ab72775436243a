"""What is computed when it is asked for first, without waiting for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class computed_once(Generic[T]):  # noqa: N801 - a decorator
    """`functools.cached_property` without its lock.

    Up to Python 3.11 that lock is one for all instances: threads that work on different items
    would wait for each other. Two threads that ask the same instance may both compute the value.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        """Compute the value and keep it in the instance, where it hides this descriptor."""
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.function(instance)
        return value
