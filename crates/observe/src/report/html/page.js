// Draws every figure of the page from the data beside it. Without this script, and in print, the page shows its static
// pictures.
(() => {
  "use strict";
  const FEW = 60;
  const NEAR_PX = 30;
  const RADIUS_PX = 3.5;
  const CROSS_PX = 5;

  const root = document.documentElement;
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const colour = (index) => css(`--series-${index % 8}`);
  const dark = matchMedia("(prefers-color-scheme: dark)");

  const element = (parent, tag, className, text) => {
    const made = parent.appendChild(document.createElement(tag));
    made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };

  const number = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    return size >= 1e9 || size < 1e-4 ? value.toExponential(3) : String(Number(value.toPrecision(5)));
  };

  // One ascending column of x for all series. A series without a point there has undefined, which joins its line; one
  // whose line is interrupted has null. A second point of a series at the same x has a row of its own.
  const align = (series) => {
    const rows = new Map();
    const keys = series.map((one) => {
      let occurrence = 0;
      return one.x.map((x, i) => {
        occurrence = i > 0 && one.x[i - 1] === x ? occurrence + 1 : 0;
        const key = `${x} ${occurrence}`;
        if (!rows.has(key)) rows.set(key, [x, occurrence]);
        return key;
      });
    });
    const ordered = [...rows].sort(([, a], [, b]) => a[0] - b[0] || a[1] - b[1]);
    const index = new Map(ordered.map(([key], i) => [key, i]));
    const columns = series.map((one, s) => {
      const column = new Array(ordered.length);
      one.y.forEach((y, i) => {
        if (!(i in one.invalid)) column[index.get(keys[s][i])] = y;
      });
      return column;
    });
    return [ordered.map(([, [x]]) => x), ...columns];
  };

  // The visible range is at first everything, by wholeRange(), and then the range that the reader selects by dragging.
  const scale = (axis) => ({
    time: false,
    auto: false,
    distr: axis.log ? 3 : 1,
    min: axis.low,
    max: axis.high,
    range: (u, low, high) => [low, high],
  });

  // Ticks at powers of ten, and at 2 and 5 times these if there are few; in equal steps if hardly any is visible.
  const logTicks = (u, axis, low, high) => {
    const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const digits = last - first <= 4 ? [1, 2, 5] : [1];
    const ticks = [];
    for (let power = first; power <= last; power += 1) ticks.push(...digits.map((digit) => digit * 10 ** power));
    const inSight = ticks.filter((tick) => tick >= low && tick <= high);
    return inSight.length >= 3 ? inSight : equalSteps(low, high);
  };

  const equalSteps = (low, high) => {
    const rough = (high - low) / 6;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    const ticks = [];
    for (let at = Math.ceil(low / step); at * step <= high; at += 1) ticks.push(at * step);
    return ticks;
  };

  // Breaks a name into lines that fit a width.
  const wrapped = (name, width) => {
    const lines = [];
    for (const word of name.split(" ")) {
      const joined = lines.length ? `${lines.at(-1)} ${word}` : word;
      if (lines.length && joined.length * 7 <= width) lines[lines.length - 1] = joined;
      else lines.push(word);
    }
    return lines.join("\n");
  };

  const shownX = (figure, x) => figure.x.names?.[x] ?? number(x);

  const axisOptions = (axis, key, side, grid) => {
    const options = {
      scale: key,
      side,
      label: axis.label,
      stroke: () => css("--text"),
      grid: { show: grid, stroke: () => css("--grid"), width: 1 },
      ticks: { stroke: () => css("--line"), width: 1, size: 5 },
      font: "12px system-ui, sans-serif",
      labelFont: "13px system-ui, sans-serif",
      labelSize: 24,
    };
    if (axis.names) {
      // Each word gets a line of its own if there is room.
      options.splits = () => axis.names.map((_, i) => i);
      options.filter = (u, splits) => splits;
      const width = (u) => (u.width - 90) / axis.names.length;
      options.values = (u, splits) => splits.map((i) => wrapped(axis.names[i], width(u)));
      options.grid.show = options.ticks.show = false;
    }
    if (side === 2) {
      const lines = (text) => text.split("\n").length;
      options.size = (u, values) => 32 + 18 * (Math.max(1, ...(axis.names && values ? values : []).map(lines)) - 1);
    } else {
      options.size = (u, values) => Math.max(36, ...(values || []).map((value) => 14 + 7 * String(value).length));
    }
    if (axis.log) {
      options.splits = logTicks;
      options.filter = (u, splits) => splits;
      options.values = (u, splits) => splits.map(number);
      options.grid.filter = options.ticks.filter = options.filter;
    }
    return options;
  };

  const seriesOptions = (one, index) => {
    const few = one.x.length <= FEW;
    const isPoints = one.style === "points";
    const isBars = one.style === "bars";
    const options = {
      label: one.name,
      scale: one.right ? "right" : "y",
      stroke: () => colour(index),
      width: 1.8,
      points: {
        show: isPoints || (few && one.style !== "dashed" && !isBars),
        size: few ? 2 * RADIUS_PX : 4,
        width: 0,
        fill: () => colour(index),
      },
    };
    if (one.style === "dashed") options.dash = [7, 5];
    if (one.style === "steps") options.paths = uPlot.paths.stepped({ align: 1 });
    if (isPoints || isBars) options.paths = () => null;
    return options;
  };

  // A mark at the edge of the figure needs some room beyond it.
  const clipped = (u, draw, room = 0) => {
    const { ctx, bbox } = u;
    const beyond = room * uPlot.pxRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - beyond, bbox.top - beyond, bbox.width + 2 * beyond, bbox.height + 2 * beyond);
    ctx.clip();
    draw(ctx, bbox, uPlot.pxRatio);
    ctx.restore();
  };

  const drawSpans = (u, figure) =>
    clipped(u, (ctx, bbox) => {
      ctx.fillStyle = css("--span");
      for (const { from, to } of figure.annotations.filter((one) => one.from !== undefined)) {
        const left = u.valToPos(from, "x", true);
        ctx.fillRect(left, bbox.top, u.valToPos(to, "x", true) - left, bbox.height);
      }
    });

  // The marks of several series stand beside each other, each with its number.
  const drawBars = (u, figure, ctx, px) => {
    const bars = figure.series.filter((one) => one.style === "bars");
    ctx.font = `${13 * px}px system-ui, sans-serif`;
    ctx.textAlign = "center";
    figure.series.forEach((one, index) => {
      if (one.style !== "bars" || !u.series[index + 1].show) return;
      const width = 0.7 / bars.length;
      ctx.fillStyle = colour(index);
      one.x.forEach((value, i) => {
        if (i in one.invalid || one.y[i] === null) return;
        const from = value - 0.35 + bars.indexOf(one) * width;
        const [left, right] = [from, from + width * 0.96].map((x) => u.valToPos(x, "x", true));
        const [top, bottom] = [one.y[i], 0].map((y) => u.valToPos(y, one.right ? "right" : "y", true));
        ctx.fillRect(left, top, right - left, bottom - top);
        ctx.fillText(number(Math.round(one.y[i] * 10) / 10), (left + right) / 2, top - 5 * px);
      });
    });
  };

  const drawMarks = (u, figure) =>
    clipped(u, (ctx, bbox, px) => {
      // The drawing context may still have the dashes of an earlier series.
      ctx.setLineDash([]);
      drawBars(u, figure, ctx, px);
      figure.series.forEach((one, index) => {
        if (!u.series[index + 1].show) return;
        const key = one.right ? "right" : "y";
        ctx.strokeStyle = colour(index);
        ctx.beginPath();
        one.x.forEach((value, i) => {
          const x = u.valToPos(value, "x", true);
          const low = one.low?.[i] ?? null;
          const high = one.high?.[i] ?? null;
          if (low !== null || high !== null) {
            const top = u.valToPos(high ?? one.y[i], key, true);
            const found = u.valToPos(low ?? one.y[i], key, true);
            const bottom = Number.isFinite(found) ? found : bbox.top + bbox.height;
            for (const end of [top, bottom]) {
              ctx.moveTo(x - 4 * px, end);
              ctx.lineTo(x + 4 * px, end);
            }
            ctx.moveTo(x, top);
            ctx.lineTo(x, bottom);
          }
        });
        ctx.lineWidth = 1.2 * px;
        ctx.stroke();
        ctx.beginPath();
        for (const i of Object.keys(one.invalid)) {
          if (one.y[i] === null) continue;
          const x = u.valToPos(one.x[i], "x", true);
          const y = u.valToPos(one.y[i], key, true);
          const reach = CROSS_PX * px;
          ctx.moveTo(x - reach, y - reach);
          ctx.lineTo(x + reach, y + reach);
          ctx.moveTo(x - reach, y + reach);
          ctx.lineTo(x + reach, y - reach);
        }
        ctx.lineWidth = 2 * px;
        ctx.stroke();
      });
      drawAnnotations(u, figure, ctx, bbox, px);
    }, CROSS_PX + 1);

  const drawAnnotations = (u, figure, ctx, bbox, px) => {
    ctx.strokeStyle = ctx.fillStyle = css("--quiet");
    ctx.lineWidth = px;
    ctx.font = `${12 * px}px system-ui, sans-serif`;
    ctx.setLineDash([2 * px, 3 * px]);
    for (const one of figure.annotations) {
      ctx.beginPath();
      if (one.y !== undefined) {
        const y = u.valToPos(one.y, "y", true);
        ctx.moveTo(bbox.left, y);
        ctx.lineTo(bbox.left + bbox.width, y);
        ctx.textAlign = "right";
        ctx.fillText(one.text, bbox.left + bbox.width - 4 * px, y - 5 * px);
      } else {
        const x = u.valToPos(one.x ?? one.from, "x", true);
        if (one.x !== undefined) {
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
        }
        ctx.textAlign = "left";
        ctx.fillText(one.text, x + 5 * px, bbox.top + 14 * px);
      }
      ctx.stroke();
    }
    ctx.setLineDash([]);
  };

  // The first index whose x is not smaller.
  const firstFrom = (xs, x) => {
    let [low, high] = [0, xs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  const nearest = (u, figure, left, top) => {
    let found = null;
    const [from, to] = [u.posToVal(left - NEAR_PX, "x"), u.posToVal(left + NEAR_PX, "x")];
    figure.series.forEach((one, index) => {
      if (!u.series[index + 1].show) return;
      for (let i = firstFrom(one.x, from); i < one.x.length && one.x[i] <= to; i += 1) {
        if (one.y[i] === null) continue;
        const x = u.valToPos(one.x[i], "x");
        const y = u.valToPos(one.y[i], one.right ? "right" : "y");
        const distance = Math.hypot(x - left, y - top);
        if (distance <= NEAR_PX && (!found || distance < found.distance)) found = { distance, one, index, i, x, y };
      }
    });
    return found;
  };

  const hover = (u, figure, tip, dot) => {
    const { left, top } = u.cursor;
    const found = left >= 0 ? nearest(u, figure, left, top) : null;
    tip.style.display = dot.style.display = found ? "block" : "none";
    if (!found) return;
    const { one, index, i, x, y } = found;
    const axis = one.right ? figure.right : figure.y;
    const lines = [one.name, `${figure.x.label}: ${shownX(figure, one.x[i])}`, `${axis.label}: ${number(one.y[i])}`];
    const [low, high] = [one.low?.[i] ?? null, one.high?.[i] ?? null];
    if (low !== null || high !== null) {
      lines.push(`from ${number(low ?? one.y[i])} to ${number(high ?? one.y[i])}`);
    }
    if (i in one.invalid) lines.push(`not valid: ${one.invalid[i]}`);
    tip.textContent = lines.join("\n");
    const onLeft = x > u.over.clientWidth / 2;
    tip.style.left = onLeft ? "" : `${x + 12}px`;
    tip.style.right = onLeft ? `${u.over.clientWidth - x + 12}px` : "";
    tip.style.top = `${Math.max(0, Math.min(y - 20, u.over.clientHeight - tip.offsetHeight))}px`;
    dot.style.left = `${x}px`;
    dot.style.top = `${y}px`;
    dot.style.borderColor = colour(index);
  };

  const wholeRange = (u, figure) =>
    u.batch(() => {
      for (const key of ["x", "y", "right"]) {
        if (figure[key]) u.setScale(key, { min: figure[key].low, max: figure[key].high });
      }
    });

  const height = (width) => (width < 560 ? 300 : 400);

  const plot = (figure, place) => {
    const [tip, dot] = [document.createElement("div"), document.createElement("div")];
    [tip.className, dot.className] = ["tip", "dot"];
    const scales = { x: scale(figure.x), y: scale(figure.y) };
    const axes = [axisOptions(figure.x, "x", 2, true), axisOptions(figure.y, "y", 3, true)];
    if (figure.right) {
      scales.right = scale(figure.right);
      axes.push(axisOptions(figure.right, "right", 1, false));
    }
    const options = {
      width: place.clientWidth,
      height: height(place.clientWidth),
      padding: [10, figure.right ? 0 : 16, 0, 0],
      scales,
      axes,
      series: [{}, ...figure.series.map(seriesOptions)],
      legend: { show: false },
      cursor: {
        drag: { x: true, y: true, uni: 40 },
        points: { show: false },
        bind: { dblclick: (u) => () => wholeRange(u, figure) },
      },
      hooks: {
        ready: [(u) => u.over.append(dot, tip), (u) => wholeRange(u, figure)],
        drawClear: [(u) => drawSpans(u, figure)],
        draw: [(u) => drawMarks(u, figure)],
        setCursor: [(u) => hover(u, figure, tip, dot)],
      },
    };
    const u = new uPlot(options, align(figure.series), place);
    new ResizeObserver(() => {
      const width = place.clientWidth;
      if (width > 0 && width !== u.width) u.setSize({ width, height: height(width) });
    }).observe(place);
    dark.addEventListener("change", () => u.redraw(false));
    return u;
  };

  const legend = (u, figure, place) => {
    const paint = [];
    figure.series.forEach((one, index) => {
      const button = element(place, "button", "");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      const sample = element(button, "i", one.style);
      const side = one.right ? " (right)" : " (left)";
      button.append(one.name + (figure.right ? side : ""));
      paint.push(() => (sample.style.color = colour(index)));
      button.addEventListener("click", () => {
        const show = !u.series[index + 1].show;
        button.setAttribute("aria-pressed", String(show));
        u.setSeries(index + 1, { show });
      });
    });
    const reasons = figure.series.flatMap((one) => Object.values(one.invalid));
    for (const reason of new Set(reasons)) element(place, "span", "invalid", `× not valid: ${reason}`);
    const paintAll = () => paint.forEach((one) => one());
    paintAll();
    dark.addEventListener("change", paintAll);
  };

  const csv = (figure) => {
    const cell = (value) => `"${String(value ?? "").replaceAll('"', '""')}"`;
    const lines = [["series", figure.x.label, "value", "unit", "low", "high", "not valid"].map(cell).join(",")];
    for (const one of figure.series) {
      const axis = one.right ? figure.right : figure.y;
      one.x.forEach((x, i) => {
        const numbers = [one.low?.[i], one.high?.[i]].map((value) => value ?? "");
        lines.push([cell(one.name), figure.x.names ? cell(shownX(figure, x)) : x, one.y[i] ?? "", cell(axis.unit), ...numbers, cell(one.invalid[i])].join(","));
      });
    }
    return lines.join("\r\n") + "\r\n";
  };

  const save = (figure) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv(figure)], { type: "text/csv" }));
    link.download = `${figure.title.replace(/[^\p{L}\p{N}]+/gu, "-")}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const tools = (u, figure, place) => {
    const button = (text, action) => {
      const made = element(place, "button", "", text);
      made.type = "button";
      made.addEventListener("click", action);
    };
    button("Whole range", () => wholeRange(u, figure));
    button("Save as CSV", () => save(figure));
    element(place, "span", "drag", "Drag to zoom");
  };

  root.classList.add("js");
  for (const place of document.querySelectorAll("figure")) {
    const figure = JSON.parse(place.querySelector("script").textContent);
    const u = plot(figure, place.querySelector(".plot"));
    legend(u, figure, place.querySelector(".legend"));
    tools(u, figure, place.querySelector(".tools"));
  }
})();
