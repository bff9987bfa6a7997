"""A partition's leaders and followers: who may write, and what readers may see."""
