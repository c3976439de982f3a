#!/usr/bin/env python3
"""A program that Python cannot compile."""
def train(:
    pass
