"""Lines that are executed often: lines.py WHICH CHUNKS prints, for each chunk of work, the ns of CPU that it took.

WHICH is "loops" (a bubble sort and a sieve: few calls), "text" (words counted: conditions, dicts, methods), "calls" (an
interpreter of a small language: a call for every few lines) or "dense" (comprehensions and conditional expressions:
several blocks a line).
"""

import sys
import time


def bubble_sort(items):
    for end in range(len(items), 1, -1):
        for place in range(end - 1):
            if items[place] > items[place + 1]:
                held = items[place]
                items[place] = items[place + 1]
                items[place + 1] = held


def sieve(size):
    marks = bytearray(size)
    found = 0
    for number in range(2, size):
        if marks[number]:
            continue
        found += 1
        multiple = number * number
        while multiple < size:
            marks[multiple] = 1
            multiple += number
    return found


def loops():
    bubble_sort([(n * 7919) % 601 for n in range(600)])
    sieve(60_000)


def words_of(text):
    word = ""
    for character in text:
        if character.isalpha():
            word += character
        elif word:
            yield word
            word = ""


class Tally:
    def __init__(self):
        self.counts = {}
        self.longest = ""

    def add(self, word):
        known = self.counts.get(word)
        if known is None:
            self.counts[word] = 1
        else:
            self.counts[word] = known + 1
        if len(word) > len(self.longest):
            self.longest = word


def text():
    tally = Tally()
    for turn in range(60):
        for word in words_of(__doc__):
            tally.add(word)
        if turn % 10 == 0:
            tally.longest = ""


def evaluate(node, names):
    kind = node[0]
    if kind == "number":
        return node[1]
    if kind == "name":
        return names[node[1]]
    left = evaluate(node[1], names)
    right = evaluate(node[2], names)
    if kind == "add":
        return left + right
    return left * right


def calls():
    tree = ("add", ("multiply", ("name", "x"), ("number", 3)), ("add", ("number", 1), ("name", "y")))
    names = {"x": 0, "y": 0}
    for n in range(6_000):
        names["x"] = n
        names["y"] = evaluate(tree, names) % 97


def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def dense():
    longest = most = 0
    for n in range(1, 2_000):
        steps = collatz(n)
        longest, most = (n, steps) if steps > most else (longest, most)
        longest += 1 if steps and (n % 3 == 0 or n % 5 == 0) else 0
        odd = [k for k in range(n % 40) if k % 2]
        longest = max(longest, len(odd) or 1)


def chunk(work):
    spent = time.thread_time_ns()
    work()
    return time.thread_time_ns() - spent


def main(which, chunks):
    print(*[chunk({"loops": loops, "text": text, "calls": calls, "dense": dense}[which]) for _ in range(int(chunks))])


main(*sys.argv[1:])
